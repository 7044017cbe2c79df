// The figures of a run at the playhead, computed once per change for all panels that show them.
#pragma once

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;
struct Numbers;
struct StepRange;

/// Returns the steps that the panel Numbers covers: those that end in the measured range of the timeline, else all; up to the playhead.
StepRange steps_for_numbers(Context& context, const engine::RunRecord& run);
/// Returns the run's figures at the playhead. The reference is valid until the next call for the same run.
const Numbers& run_numbers(Context& context, const engine::RunRecord& run);
/// Returns the figures of steps_for_numbers(); valid until the next call for the same run.
const Numbers& range_numbers(Context& context, const engine::RunRecord& run);

}  // namespace ui

// The figures of a run at the playhead, computed once per change for all panels that show them.
#pragma once

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;
struct Numbers;

/// Returns the run's figures at the playhead. The reference is valid until the next call for the same run.
const Numbers& run_numbers(Context& context, const engine::RunRecord& run);

}  // namespace ui

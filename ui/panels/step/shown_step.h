// The step that the panels Tree, Mask, P/Q and Pool show.
#pragma once

#include <optional>
#include <string>

#include "engine/event/timeline/step_store.h"

namespace engine {
struct RunRecord;
}

namespace ui {

struct Context;

/// The step that the panels show, and whether the user selected it.
struct ShownStep {
  std::optional<engine::StepRecord> step;  // nullopt: no step is complete at the playhead
  bool selected = false;  // true: the selected step; false: the step at the playhead
};

/// Returns the selected step if the playhead has passed it, else the step at the playhead.
ShownStep shown_step(Context& context, const engine::RunRecord& run);
/// Returns "step 12"; for a selected step, also the key that returns to the playhead.
std::string words_of(const ShownStep& shown);
/// Returns why the probabilities of a step were dropped; empty if they were not.
std::string why_no_probabilities(const engine::RunRecord& run, const engine::StepRecord& step);

}  // namespace ui

// The step that the panels of a single step show: Tree, Mask, P/Q.
#pragma once

#include <optional>
#include <string>

#include "ui/shell/context.h"

namespace ui {

struct ShownStep {
  std::optional<engine::StepRecord> step;  // none: no step has come to the playhead
  bool selected = false;                   // it was clicked; else it is the one at the playhead
};

/// A step that was clicked goes before the one at the playhead, once the playhead has passed it.
ShownStep shown_step(Context& context, const engine::RunRecord& run);
/// "step 12", with how to get back where it was clicked.
std::string words_of(const ShownStep& shown);
/// Why a step's q, p and draws are not there, where they were let go; empty: they were not.
std::string why_no_probabilities(const engine::RunRecord& run, const engine::StepRecord& step);

}  // namespace ui

// The facts of a selected place, in words: for the Inspector, the clipboard and screen readers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/timeline.h"
#include "ui/selection.h"
#include "ui/theme.h"

namespace ui {

struct PlaceFacts {
  std::string title;           // "step 41 · position 132"
  engine::TokenId token = -1;  // the selected one, if any
  Mean mean = Mean::Prefix, origin = Mean::Prefix;
  std::vector<std::pair<std::string, std::string>> rows;  // label, value
  std::string sentence;                                   // "Step 12: 5 proposed, 3 accepted, ..."
};

PlaceFacts describe_place(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const Place& place);
/// One sentence on a step; empty if it has nothing to tell yet.
std::string describe_step(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const engine::StepRecord& step);
/// The step's record, if there is one.
std::optional<engine::StepRecord> step_of(const engine::RunRecord& run, engine::StepId step);

}  // namespace ui

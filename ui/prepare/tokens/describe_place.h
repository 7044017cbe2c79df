// The facts of a selected place, in words: for the Inspector, the clipboard and screen readers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/numbers.h"
#include "ui/shell/selection.h"
#include "ui/widgets/theme.h"

namespace ui {

struct Fact {
  std::string label, value;
  Truth truth = Truth::Measured;
};

struct PlaceFacts {
  std::string title;           // "step 41 · position 132"
  engine::TokenId token = -1;  // the selected one, if any
  Mean mean = Mean::Prefix, origin = Mean::Prefix;
  std::vector<Fact> rows;
  std::string sentence;  // "Step 12: 5 proposed, 3 accepted, ..."
};

PlaceFacts describe_place(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const Place& place);
/// The same of several places chosen together: of the tokens if they are tokens, else of the steps.
PlaceFacts describe_places(const engine::Timeline& timeline,
                           const engine::RunRecord& run,
                           const Chosen& chosen);
/// The text of the tokens among them, in the order of their positions, between tildes where they
/// are approximate.
std::string text_of(const engine::Timeline& timeline,
                    const engine::RunRecord& run,
                    const Chosen& chosen);
/// One sentence on a step; empty if it has nothing to tell yet.
std::string describe_step(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const engine::StepRecord& step);
/// The step's record, if there is one.
std::optional<engine::StepRecord> step_of(const engine::RunRecord& run, engine::StepId step);

}  // namespace ui

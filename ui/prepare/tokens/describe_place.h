// Describes a selected place in words, for the Inspector, the clipboard and screen readers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/event/timeline/step_store.h"
#include "ui/prepare/fact.h"
#include "ui/prepare/selection.h"
#include "ui/widgets/theme.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// The facts of a place.
struct PlaceFacts {
  std::string title;           // the title: "step 41 · position 132"
  engine::TokenId token = -1;  // the token of the place; -1: none
  Mean mean = Mean::Prefix, origin = Mean::Prefix;
  std::vector<Fact> rows;
  std::string sentence;  // a description: "Step 12: 5 proposed, 3 accepted, ..."
};

/// Returns the facts of one place.
PlaceFacts describe_place(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const Place& place);
/// Returns the facts of several places: of their tokens if there are any, else of their steps.
PlaceFacts describe_places(const engine::Timeline& timeline,
                           const engine::RunRecord& run,
                           const Chosen& chosen);
/// Returns the text of the tokens among several places, by position; approximate tokens are between tildes.
std::string text_of(const engine::Timeline& timeline,
                    const engine::RunRecord& run,
                    const Chosen& chosen);
/// Returns a sentence about a step.
std::string describe_step(const engine::Timeline& timeline,
                          const engine::RunRecord& run,
                          const engine::StepRecord& step);
/// Returns the record of a step, if it exists.
std::optional<engine::StepRecord> step_of(const engine::RunRecord& run, engine::StepId step);

}  // namespace ui

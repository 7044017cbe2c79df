// What one of the many runs of a tree of thoughts writes for it.
#pragma once

#include <span>
#include <string>

#include "engine/event/timeline/timeline.h"

namespace ui {

/// By its prompt's id, which a run has from its start: "thought 7: answer", "score of thought 7",
/// "final answer"; with several searches its number in front, "2, thought 7: answer". Empty: it is
/// of none of them.
std::string part_of_search(std::span<const engine::SearchRecord> searches,
                           const engine::RunStarted& started);

}  // namespace ui

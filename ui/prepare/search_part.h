// The part of a tree of thoughts that one of its runs writes.
#pragma once

#include <span>
#include <string>

namespace engine {
struct RunStarted;
struct SearchRecord;
}  // namespace engine

namespace ui {

/// Returns the search that a run belongs to; null if it belongs to none.
const engine::SearchRecord* search_of(std::span<const engine::SearchRecord> searches,
                                      const engine::RunStarted& started);

/// Returns the part, which it reads from the id of the run's prompt: "thought 7: answer", "score of thought 7", "final answer". If there are
/// several searches, the number of the search comes first: "2, thought 7: answer". Empty if the run belongs to none of them.
std::string part_of_search(std::span<const engine::SearchRecord> searches,
                           const engine::RunStarted& started);

}  // namespace ui

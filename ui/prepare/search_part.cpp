#include "ui/prepare/search_part.h"

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {

namespace {

// Returns the part of a prompt's id after the id of its search, "/7/answer" (engine/reason/tot.cpp); empty if it has none.
std::string rest_of(const engine::SearchRecord& search, const std::string& prompt_id) {
  if (!prompt_id.starts_with(search.begun.id)) return "";
  const std::string rest = prompt_id.substr(search.begun.id.size());
  return rest.starts_with('/') && rest.find('/', 1) != std::string::npos ? rest : "";
}

}  // namespace

const engine::SearchRecord* search_of(std::span<const engine::SearchRecord> searches,
                                      const engine::RunStarted& started) {
  // The newest search that began before the run: the same question may be searched several times.
  for (auto search = searches.rbegin(); search != searches.rend(); ++search)
    if (search->begun.t <= started.t && !rest_of(*search, started.prompt_id).empty())
      return &*search;
  return nullptr;
}

std::string part_of_search(std::span<const engine::SearchRecord> searches,
                           const engine::RunStarted& started) {
  const engine::SearchRecord* search = search_of(searches, started);
  if (!search) return "";
  const std::string rest = rest_of(*search, started.prompt_id);
  const std::size_t slash = rest.find('/', 1);
  const std::string node = rest.substr(1, slash - 1), part = rest.substr(slash + 1);
  const std::string which = searches.size() > 1 ? fmt::format("{}, ", search->begun.search) : "";
  if (part == "value") return which + "score of thought " + node;
  if (part == "final") return which + "final answer";
  return fmt::format("{}thought {}: {}", which, node, part);
}

}  // namespace ui

#include "ui/prepare/search_part.h"

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {

std::string part_of_search(std::span<const engine::SearchRecord> searches,
                           const engine::RunStarted& started) {
  const std::string& whole = started.prompt_id;
  // The newest search that began before the run: the same question may be searched several times.
  for (auto search = searches.rbegin(); search != searches.rend(); ++search) {
    const std::string& id = search->begun.id;
    if (search->begun.t > started.t || !whole.starts_with(id)) continue;
    const std::string rest = whole.substr(id.size());  // "/7/answer", of engine/reason/tot.cpp
    const std::size_t slash = rest.find('/', 1);
    if (!rest.starts_with('/') || slash == std::string::npos) continue;
    const std::string node = rest.substr(1, slash - 1), part = rest.substr(slash + 1);
    const std::string which = searches.size() > 1 ? fmt::format("{}, ", search->begun.search) : "";
    if (part == "value") return which + "score of thought " + node;
    if (part == "final") return which + "final answer";
    return fmt::format("{}thought {}: {}", which, node, part);
  }
  return "";
}

}  // namespace ui

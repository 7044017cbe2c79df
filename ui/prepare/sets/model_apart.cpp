#include "ui/prepare/sets/model_apart.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"

namespace ui {

std::string model_apart(const engine::Timeline& timeline,
                        std::span<const engine::RunRecord* const> runs,
                        const engine::RunRecord& run) {
  const engine::ModelLoaded* own = timeline.model(run.started.model);
  if (!own) return "";
  bool is_other = false;
  std::size_t common = own->name.size();  // characters that all names begin with, up to a hyphen
  for (const engine::RunRecord* other : runs) {
    const engine::ModelLoaded* its = timeline.model(other->started.model);
    if (other->started.decoder != run.started.decoder || !its || its == own) continue;
    is_other = true;
    if (its->name == own->name) return fmt::format("{} {}", own->scale, own->dtype);
    const auto end = std::ranges::mismatch(own->name, its->name).in1 - own->name.begin();
    const std::size_t hyphen = own->name.rfind('-', static_cast<std::size_t>(end));
    common = std::min(common, hyphen == std::string::npos ? 0 : hyphen + 1);
  }
  return is_other ? own->name.substr(common) : "";
}

}  // namespace ui

#include "ui/prepare/time/lane_order.h"

#include <algorithm>
#include <utility>

namespace ui {
namespace {

bool holds(std::span<const LaneKey> lanes, LaneKey lane) {
  return std::find(lanes.begin(), lanes.end(), lane) != lanes.end();
}

}  // namespace

// Returns all lanes, hidden ones included, in the user's order. A lane without a place in it is inserted after its predecessor in `natural`.
std::vector<LaneKey> LaneOrder::all_arranged(std::span<const LaneKey> natural) const {
  std::vector<LaneKey> lanes;
  for (const LaneKey& lane : order_)
    if (holds(natural, lane)) lanes.push_back(lane);
  for (std::size_t i = 0; i < natural.size(); ++i) {
    if (holds(lanes, natural[i])) continue;
    const auto before =
        i == 0 ? lanes.end() : std::find(lanes.begin(), lanes.end(), natural[i - 1]);
    lanes.insert(before == lanes.end() ? lanes.begin() : before + 1, natural[i]);
  }
  return lanes;
}

std::vector<LaneKey> LaneOrder::arranged(std::span<const LaneKey> natural) const {
  std::vector<LaneKey> lanes = all_arranged(natural);
  std::erase_if(lanes, [this](const LaneKey& lane) { return hidden(lane); });
  return lanes;
}

void LaneOrder::move(std::span<const LaneKey> natural, LaneKey lane, int to) {
  const std::vector<LaneKey> seen = arranged(natural);
  const int last = static_cast<int>(seen.size()) - 1;
  if (!holds(seen, lane)) return;
  const LaneKey at = seen[static_cast<std::size_t>(std::clamp(to, 0, last))];
  if (at == lane) return;
  std::vector<LaneKey> lanes = all_arranged(natural);
  const auto from = std::find(lanes.begin(), lanes.end(), lane);
  const auto place = std::find(lanes.begin(), lanes.end(), at);
  // The moved lane takes the place of the other one; the lanes between the two move by one place.
  if (from < place)
    std::rotate(from, from + 1, place + 1);
  else
    std::rotate(place, from, from + 1);
  order_ = std::move(lanes);
}

bool LaneOrder::collapsed(LaneKey lane) const {
  return holds(collapsed_, lane);
}

void LaneOrder::toggle_collapsed(LaneKey lane) {
  if (std::erase(collapsed_, lane) == 0) collapsed_.push_back(lane);
}

bool LaneOrder::hidden(LaneKey lane) const {
  return holds(hidden_, lane);
}

void LaneOrder::hide(LaneKey lane) {
  if (!hidden(lane)) hidden_.push_back(lane);
}

void LaneOrder::restore(std::array<std::vector<LaneKey>, 3> kept) {
  order_ = std::move(kept[0]);
  collapsed_ = std::move(kept[1]);
  hidden_ = std::move(kept[2]);
}

int LaneOrder::n_hidden(std::span<const LaneKey> natural) const {
  return static_cast<int>(std::count_if(natural.begin(), natural.end(),
                                        [this](const LaneKey& lane) { return hidden(lane); }));
}

}  // namespace ui

// One sentence for each notable moment of a race, for a replay that explains itself.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

struct RunTimes;

/// A lane of the race.
struct CaptionLane {
  const engine::RunRecord* run = nullptr;
  const RunTimes* times = nullptr;
  std::string name;  // as on the screen
};

/// A sentence about a moment.
struct Caption {
  double at = 0;  // the lane's own compute, ns
  std::string text;
};

/// Returns the captions in order of time: the first accepted proposals, the first rejection and the longest step of each lane, its end, and
/// whether the texts agree. If two moments are closer than `least_gap`, only the more
/// important one has a caption.
/// @param least_gap  ns of own compute
std::vector<Caption> captions_of(const engine::Timeline& timeline,
                                 std::span<const CaptionLane> lanes,
                                 double least_gap);

/// Returns the text of the last caption at or before a time; "" before the first.
const std::string& caption_at(std::span<const Caption> captions, double at);

}  // namespace ui

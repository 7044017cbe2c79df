// The arrows of a selected token or step across the lanes of the timeline: from the step that added its n-gram to the pool, over the steps
// that proposed it, to its verification and commit.
#pragma once

#include <vector>

#include "ui/prepare/selection.h"
#include "ui/prepare/time/lane_kind.h"

namespace engine {
struct RunRecord;
}

namespace ui {

inline constexpr std::size_t kMaxArrows = 200;

/// A lane's part of a step: arrows leave at its end and arrive at its start.
struct FlowEnd {
  LaneKind lane = LaneKind::Target;
  std::size_t step = 0;  // index of the step in the run
  bool operator==(const FlowEnd&) const = default;
};

/// An arrow.
struct FlowArrow {
  FlowEnd from, to;
  int position = 0;  // position of the token in the sequence
  bool operator==(const FlowArrow&) const = default;
};

/// Returns the arrows of a position, or of all tokens that a step committed: oldest first for each position, at most the newest kMaxArrows.
std::vector<FlowArrow> arrows_of(const engine::RunRecord& run, const Place& place);

}  // namespace ui

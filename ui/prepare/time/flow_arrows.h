// The arrows of what is selected, across the lanes of the time line: where a token's n-gram was
// found, the steps that proposed it, the check that kept it, its commit.
#pragma once

#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/gantt.h"
#include "ui/shell/selection.h"

namespace ui {

inline constexpr std::size_t kMaxArrows = 200;

/// A lane's part of a step: an arrow leaves from its end and arrives at its beginning.
struct FlowEnd {
  LaneKind lane = LaneKind::Target;
  std::size_t step = 0;  // index
  bool operator==(const FlowEnd&) const = default;
};

struct FlowArrow {
  FlowEnd from, to;
  int position = 0;  // of the token, from the sequence's start
  bool operator==(const FlowArrow&) const = default;
};

/// Of a position: its own way. Of a step: the ways of what it committed. Oldest first for each
/// position; at most kMaxArrows, the newest of them.
std::vector<FlowArrow> arrows_of(const engine::RunRecord& run, const Place& place);

}  // namespace ui

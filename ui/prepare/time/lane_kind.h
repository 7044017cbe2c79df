// The lanes and counters of the timeline.
#pragma once

namespace ui {

/// A lane or, from Rows on, a counter drawn below the lanes.
enum class LaneKind {
  Target,
  Propose,
  Verify,
  Commit,
  PoolHit,
  PoolInsert,
  Rows,
  Tokens,
  Cache,
  PoolSize,
  Choice,
};
inline constexpr int kLaneKinds = 11;

/// Returns the lane's label: "target", "pool hit".
const char* lane_name(LaneKind kind);
/// Returns true if it is a counter.
constexpr bool is_counter(LaneKind kind) {
  return kind >= LaneKind::Rows;
}
/// Returns true if the lane shows instants instead of intervals.
constexpr bool is_marks(LaneKind kind) {
  return kind == LaneKind::PoolHit || kind == LaneKind::PoolInsert;
}

}  // namespace ui

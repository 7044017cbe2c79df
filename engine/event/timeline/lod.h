// Levels of detail of a lane. Slices that are wide enough to see are drawn as slices; narrower ones
// are summed in buckets of time, which also record rare properties that must stay visible (SliceFlag).
//   levels   bucket width 65,536 ns at level 0, four times as wide at each further level
//   at each level, slices shorter than the bucket width are summed in buckets, and longer ones stay
//   slices. The cost of drawing therefore depends on the pixels, not on the number of slices
//   memory   24 bytes a slice; a level with few slices per bucket is dropped; where it would be
//            needed, the slices are scanned instead
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

inline constexpr Nanoseconds kBaseBucket = 65'536;  // bucket width of level 0
inline constexpr int kLevels = 12;                  // the widest: 65,536 * 4^11 ns, 275 s
inline constexpr double kMinPixels = 3;             // minimum width of a bucket on the screen

/// Width of a bucket of this level, ns.
Nanoseconds bucket_width(int level);

/// The slices of a span of time, summed.
struct Bucket {
  std::int64_t index = 0;      // the bucket spans [index, index + 1) * bucket_width(level)
  Nanoseconds busy = 0;        // time covered by its slices
  std::uint32_t n_slices = 0;  // slices that begin in it
  std::uint32_t n_rejected = 0, n_errors = 0, n_pool_hits = 0, n_pool_added = 0;
  Nanoseconds wasted = 0;               // forward time of rows that were not committed
  SliceKind kind = SliceKind::Forward;  // kind with most time, by majority vote (Boyer and Moore)
  std::int64_t vote = 0;                // the lead of `kind` in this vote
};

/// The slices and buckets to draw for a lane.
struct VisibleLane {
  int level = -1;  // of the buckets; -1: only real slices
  Nanoseconds width = 0;
  std::vector<Slice> slices;    // ordered by start
  std::vector<Bucket> buckets;  // ordered by index
};

/// The slices of one lane and their levels of detail; grows at the end.
class LodLane {
 public:
  /// Adds a slice. One that begins before the last slice is moved to its start, so that the lane
  /// stays sorted; negative lengths become 0.
  void add(Slice slice);
  /// The slices and buckets in [t0, t1), for a width of `px` pixels.
  VisibleLane visible(Nanoseconds t0, Nanoseconds t1, double px) const;

  /// All slices by start.
  const std::deque<Slice>& slices() const { return slices_; }
  /// The lowest level that is not dropped.
  int lowest_level() const { return lowest_; }
  /// All buckets of a level by index.
  /// @throws ContractError  the level is dropped
  std::vector<Bucket> buckets(int level) const;
  /// Slices of at least this level's bucket width; they are in no bucket of this level or below.
  std::vector<Slice> long_slices(int level) const;
  /// The latest end of a slice.
  Nanoseconds end() const { return end_; }
  /// Number of buckets of all levels.
  std::size_t n_buckets() const;

 private:
  /// A slice is added only to the lowest level whose buckets are wider than the slice. When a
  /// bucket can no longer change, it is added once to the level above. So each slice needs only one
  /// update, not one per level.
  struct Level {
    std::vector<Bucket> buckets;
    std::size_t n_folded = 0;  // number of buckets added to the next level
    // indices of slices at least as wide as a bucket of this level, but not of the next one
    std::vector<std::uint32_t> longer;
  };
  static std::size_t at(int level) { return static_cast<std::size_t>(level); }
  static Bucket& bucket(std::vector<Bucket>& buckets, std::int64_t index);
  void add_to(int level, const Slice& slice);
  /// Adds the buckets of a level that end at `t` or before to the next level.
  /// @return  true if there were any
  bool fold(int level, Nanoseconds t);
  /// Adds to the buckets [first, last] of `level` the lower buckets that were not yet added to it.
  void add_unfolded(int level,
                    std::int64_t first,
                    std::int64_t last,
                    std::vector<Bucket>& buckets) const;
  /// Finds the highest level with few slices per bucket; drops it and all levels below it, after
  /// adding their buckets to the level above.
  void drop_thin_levels();
  /// Index of the first slice that may end after t.
  std::size_t first_reaching(Nanoseconds t) const;
  void merge_close(Nanoseconds t0, Nanoseconds t1, Nanoseconds width, VisibleLane& out) const;

  std::deque<Slice> slices_;
  // [n_slices] latest end of slices 0..i; empty while the ends ascend.
  std::deque<Nanoseconds> max_end_;
  Nanoseconds end_ = 0;
  std::array<Level, kLevels> levels_;
  int lowest_ = 0;  // levels below are dropped
};

/// A lane as a bit of a set.
constexpr unsigned lane_bit(LaneKind lane) {
  return 1U << static_cast<unsigned>(lane);
}
inline constexpr unsigned kAllLanes = (1U << kLaneKinds) - 1;

/// The lanes of one run on one clock, updated step by step.
class RunLod {
 public:
  /// Starts with lanes that have no slices.
  explicit RunLod(Clock clock) : clock_(clock) {}
  /// Adds the run's new steps to `lanes`; the cost depends on the new steps alone. Other lanes take
  /// no memory.
  void update(const RunRecord& run, unsigned lanes = kAllLanes);
  /// A lane as of its last update.
  const LodLane& lane(LaneKind kind) const { return lanes_[static_cast<std::size_t>(kind)]; }
  /// The clock of all lanes.
  Clock clock() const { return clock_; }
  /// The end of the last slice.
  Nanoseconds end() const;

 private:
  Clock clock_;
  std::array<LodLane, kLaneKinds> lanes_;
  std::array<std::size_t, kLaneKinds> n_steps_{};  // number of steps processed
  std::size_t n_phases_ = 0;
  bool over_ = false;
};

}  // namespace engine

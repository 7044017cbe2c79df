// What of a lane is visible at a zoom: real slices while they are wide enough to see, else buckets
// of time that still count what must never be hidden (Rare).
//   levels   bucket width 65,536 ns at level 0, four times as wide each further level
//   a level  holds slices shorter than its bucket in buckets, and longer ones as themselves, so
//            that no level ever costs more than a few pixels' worth of either
//   memory   24 bytes a slice; a level whose buckets hold few slices each is let go, and a zoom
//            that would need it looks at the slices themselves
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

inline constexpr Nanoseconds kBaseBucket = 65'536;
inline constexpr int kLevels = 12;  // the widest: 65,536 * 4^11 ns, 275 s
inline constexpr double kMinPixels = 3;

/// Width of a bucket of this level, ns.
Nanoseconds bucket_width(int level);

struct Bucket {
  std::int64_t index = 0;      // it spans [index, index + 1) * bucket_width(level)
  Nanoseconds busy = 0;        // time covered by its slices
  std::uint32_t n_slices = 0;  // that begin in it
  std::uint32_t n_rejected = 0, n_errors = 0, n_pool_hits = 0, n_pool_added = 0;
  Nanoseconds wasted = 0;               // of forwards: time of rows thrown away
  SliceKind kind = SliceKind::Forward;  // the one with most time, by majority vote
  std::int64_t vote = 0;                // by how much it leads
};

/// What to draw of a lane.
struct VisibleLane {
  int level = -1;  // of the buckets; -1: only real slices
  Nanoseconds width = 0;
  std::vector<Slice> slices;    // by start
  std::vector<Bucket> buckets;  // by index
};

/// One lane's slices and their pyramid, growing at the end.
class LodLane {
 public:
  /// A slice that begins before the last one is moved to begin with it: nothing is lost, and the
  /// lane stays searchable. Negative lengths become 0.
  void add(Slice slice);
  /// Slices and buckets that touch [t0, t1) drawn over `px` pixels.
  VisibleLane visible(Nanoseconds t0, Nanoseconds t1, double px) const;

  const std::deque<Slice>& slices() const { return slices_; }
  /// The lowest level that is kept.
  int lowest_level() const { return lowest_; }
  /// All of a level's, by index. @throws ContractError  it was let go
  std::vector<Bucket> buckets(int level) const;
  /// Slices of at least this level's bucket width: not in its buckets nor in those below.
  std::vector<Slice> long_slices(int level) const;
  Nanoseconds end() const { return end_; }
  /// Buckets held, of all levels.
  std::size_t n_buckets() const;

 private:
  /// A slice is counted at the lowest level whose buckets are wider; a bucket that can no longer
  /// change is folded into the one above it, once. So a slice costs one level, not all of them.
  struct Level {
    std::vector<Bucket> buckets;
    std::size_t n_folded = 0;           // of the buckets, counted in the next level too
    std::vector<std::uint32_t> longer;  // indices of slices at least this wide, but not the next
  };
  static std::size_t at(int level) { return static_cast<std::size_t>(level); }
  static Bucket& bucket(std::vector<Bucket>& buckets, std::int64_t index);
  void add_to(int level, const Slice& slice);
  /// Folds the buckets of a level that end at `t` or before. @return  whether there were any
  bool fold(int level, Nanoseconds t);
  /// Adds to buckets of `level` what lower levels have not folded yet, within [first, last].
  void add_unfolded(int level,
                    std::int64_t first,
                    std::int64_t last,
                    std::vector<Bucket>& buckets) const;
  /// Folds and forgets the levels up to the highest one that holds few slices a bucket.
  void let_go_of_thin_levels();
  /// First slice that may reach beyond t.
  std::size_t first_reaching(Nanoseconds t) const;
  void merge_close(Nanoseconds t0, Nanoseconds t1, Nanoseconds width, VisibleLane& out) const;

  std::deque<Slice> slices_;
  // [n_slices] latest end of slices 0..i; empty while none ends before one in front of it.
  std::deque<Nanoseconds> max_end_;
  Nanoseconds end_ = 0;
  std::array<Level, kLevels> levels_;
  int lowest_ = 0;  // levels below were let go
};

/// Lanes as bits.
constexpr unsigned lane_bit(LaneKind lane) {
  return 1U << static_cast<unsigned>(lane);
}
inline constexpr unsigned kAllLanes = (1U << kLaneKinds) - 1;

/// The lanes of one run on one clock, fed step by step.
class RunLod {
 public:
  explicit RunLod(Clock clock) : clock_(clock) {}
  /// Takes into `lanes` what the run told since they were updated last; costs only what is new.
  /// Lanes that nobody asks for take no memory.
  void update(const RunRecord& run, unsigned lanes = kAllLanes);
  const LodLane& lane(LaneKind kind) const { return lanes_[static_cast<std::size_t>(kind)]; }
  Clock clock() const { return clock_; }
  /// Where the last slice ends.
  Nanoseconds end() const;

 private:
  Clock clock_;
  std::array<LodLane, kLaneKinds> lanes_;
  std::array<std::size_t, kLaneKinds> n_steps_{};  // of the run, taken or passed over
  std::size_t n_phases_ = 0;
  bool over_ = false;
};

}  // namespace engine

// What the time line draws for a visible range, from the levels of detail of the run's lanes
// (engine/event/timeline/lod.h): real slices where they are wide enough to see, else buckets of time. Rare
// things (a rejection, a pool hit) keep a tick in a bucket however many steps it holds.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/timeline/lod.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

enum class LaneKind {
  Target,
  Propose,
  Verify,
  Commit,
  PoolHit,
  PoolInsert,
  Rows,      // counters, below the lanes
  Tokens,    //
  Cache,     //
  PoolSize,  //
};
inline constexpr int kLaneKinds = 10;
const char* lane_name(LaneKind kind);
constexpr bool is_counter(LaneKind kind) {
  return kind >= LaneKind::Rows;
}
/// Lanes of moments without a length.
constexpr bool is_marks(LaneKind kind) {
  return kind == LaneKind::PoolHit || kind == LaneKind::PoolInsert;
}

/// The lane of the levels of detail it is drawn from; Target for a counter.
engine::LaneKind engine_lane(LaneKind lane);

struct LaneBlock {
  double t0 = 0, t1 = 0;  // on the clock
  engine::SliceKind kind = engine::SliceKind::Forward;
  engine::StepId step = -1;  // of a slice; -1: a bucket
  bool is_bucket = false;    // stands for several slices
  float wasted = 0;          // share hatched in the rejected colour, at the end
  float busy = 1;            // share of the bucket the lane was busy
  std::int64_t n_slices = 1, n_rejected = 0;
  int n_tokens = 0;  // of a slice's step
};

struct ClockView {
  ClockKind clock = ClockKind::Compute;
  double wall_origin = 0;
  double t0 = 0, t1 = 1;  // visible range, on the clock
  float width = 1000;     // pixels
};

/// Blocks of a lane between view.t0 and view.t1, oldest first; at most two for every three pixels,
/// or 64 where those are fewer. `lod` is on the view's clock. A counter has none.
std::vector<LaneBlock> blocks_in_view(const engine::RunLod& lod,
                                      const RunTimes& times,
                                      LaneKind lane,
                                      const ClockView& view);

/// Where the lane's part of one step lies on the view's clock; nothing if the step has none there.
std::optional<std::pair<double, double>> part_of_step(const engine::RunRecord& run,
                                                      const RunTimes& times,
                                                      std::size_t step,
                                                      LaneKind lane,
                                                      const ClockView& view);

/// Steps drawn as one column of a counter: [first, last), at least three pixels wide.
struct StepColumn {
  double t0 = 0, t1 = 0;  // on the clock
  std::size_t first = 0, last = 0;
};
std::vector<StepColumn> step_columns(const RunTimes& times, const ClockView& view);

/// Committed tokens in each of `n` equal parts of [begin, end] of the clock.
std::vector<float> overview(
    const RunTimes& times, const ClockView& view, double begin, double end, int n);

/// The shortest range worth looking at: 2 steps, 1 us, a thousandth of a percent.
double closest_range(ClockKind clock);
/// Times of a ruler's ticks in the visible range: 1, 2 or 5 times a power of ten apart, at least
/// `min_pixels` from each other.
std::vector<double> ruler_ticks(const ClockView& view, float min_pixels);
/// A tick's words: "250 ms", "12 us", "40", "7.5 %".
std::string tick_label(const ClockView& view, double t);
/// A length of the clock in words: "12.5 ms", "40 steps".
std::string length_words(ClockKind clock, double length);

/// Sums over the steps that end in (t0, t1] of the clock, for a measured range.
StepSums sums_between(const RunTimes& times, const ClockView& view, double t0, double t1);

}  // namespace ui

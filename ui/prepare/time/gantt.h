// The blocks that the timeline draws for a visible range. They come from the levels of detail of a
// run's lanes (engine/event/timeline/lod.h): single slices if they are wide enough to see, else
// buckets of time. A bucket keeps a tick for rare events (a rejection, a pool hit), however many
// steps it contains.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/timeline/lod.h"
#include "ui/prepare/time/lane_kind.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

/// Returns the engine's lane that supplies the slices of a lane; Target for a counter.
engine::LaneKind engine_lane(LaneKind lane);

/// A slice, or a bucket of several, as drawn in a lane.
struct LaneBlock {
  double t0 = 0, t1 = 0;  // start and end, on the clock
  engine::SliceKind kind = engine::SliceKind::Forward;
  engine::StepId step = -1;  // the step of a slice; -1 for a bucket
  bool is_bucket = false;    // true: the block represents several slices
  float wasted = 0;          // share of rows without a committed token, hatched at the end
  float busy = 1;            // share of the bucket in which the lane was busy
  std::int64_t n_slices = 1, n_rejected = 0;
  int n_tokens = 0;  // tokens that the step of a slice committed
};

/// A visible range of a clock on a number of pixels.
struct ClockView {
  ClockKind clock = ClockKind::Compute;
  double wall_origin = 0;
  double t0 = 0, t1 = 1;  // visible range, on the clock
  float width = 1000;     // width of the view, pixels
  bool empty = false;     // nothing is on the axis, so its ruler has no labels
};

/// Returns the blocks of a lane between view.t0 and view.t1, oldest first: at most two per three pixels, or 64 if that is more.
/// `lod` uses the clock of the view. A counter has no blocks.
std::vector<LaneBlock> blocks_in_view(const engine::RunLod& lod,
                                      const RunTimes& times,
                                      LaneKind lane,
                                      const ClockView& view);

/// Returns the start and end of a lane's part of one step, on the clock of the view; nullopt if the step has no such part.
std::optional<std::pair<double, double>> part_of_step(const engine::RunRecord& run,
                                                      const RunTimes& times,
                                                      std::size_t step,
                                                      LaneKind lane,
                                                      const ClockView& view);

/// Steps drawn as one column of a counter: [first, last), at least three pixels wide.
struct StepColumn {
  double t0 = 0, t1 = 0;  // start and end, on the clock
  std::size_t first = 0, last = 0;
};
/// Groups the steps of the visible range into columns, oldest first.
std::vector<StepColumn> step_columns(const RunTimes& times, const ClockView& view);

/// Returns the number of tokens committed in each of `n` equal parts of [begin, end], on the clock of the view.
std::vector<float> overview(
    const RunTimes& times, const ClockView& view, double begin, double end, int n);

/// Returns the shortest range that zooming can reach: 2 steps, 1 us, 0.001 %.
double closest_range(ClockKind clock);
/// Returns the times of the ruler's ticks in the visible range. Their distance is 1, 2 or 5 times a power of ten and at least `min_pixels`.
std::vector<double> ruler_ticks(const ClockView& view, float min_pixels);
/// Returns the labels of the ruler's ticks: "250 ms", "12.5 us", "40", "7.5 %". Each has the decimals that tell it from its neighbours.
/// @param ticks  the result of ruler_ticks()
/// @return       one label per tick; all are empty if the axis is
std::vector<std::string> tick_labels(const ClockView& view, std::span<const double> ticks);
/// Returns a length of the clock in words: "12.5 ms", "40 steps".
std::string length_words(ClockKind clock, double length);

/// Returns the sums over the steps that end in (t0, t1] on the clock of the view.
StepSums sums_between(const RunTimes& times, const ClockView& view, double t0, double t1);

}  // namespace ui

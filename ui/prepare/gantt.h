// What the time line draws for a visible range: real slices where they are wide enough to see,
// else buckets summed through the runs' running sums. Rare things (a rejection, a pool hit) keep a
// tick in a bucket however many steps it holds.
#pragma once

#include <string>
#include <vector>

#include "ui/prepare/run_times.h"

namespace ui {

enum class LaneKind { Target, Propose, Verify, Commit, PoolHit, PoolInsert };
const char* lane_name(LaneKind kind);

struct LaneBlock {
  double t0 = 0, t1 = 0;            // on the clock
  std::size_t first = 0, last = 0;  // step indices, inclusive
  float wasted = 0;                 // share hatched in the rejected colour, at the end
  float busy = 1;                   // share of the bucket the lane was busy
  int n_tokens = 0, n_rejected = 0;
  bool is_bucket = false;  // stands for several steps
};

struct ClockView {
  ClockKind clock = ClockKind::Compute;
  double wall_origin = 0;
  double t0 = 0, t1 = 1;  // visible range, on the clock
  float width = 1000;     // pixels
};

/// Blocks of a lane between view.t0 and view.t1, oldest first; at most about width / 3 of them.
std::vector<LaneBlock> blocks_in_view(const RunTimes& times, LaneKind lane, const ClockView& view);

/// Committed tokens in each of `n` equal parts of [0, end] of the clock.
std::vector<float> overview(const RunTimes& times, const ClockView& view, double end, int n);

/// Times of a ruler's ticks in the visible range: 1, 2 or 5 times a power of ten apart, at least
/// `min_pixels` from each other.
std::vector<double> ruler_ticks(const ClockView& view, float min_pixels);
/// A tick's words: "250 ms", "12 us", "step 40".
std::string tick_label(const ClockView& view, double t);

/// Sums over the steps that end in (t0, t1] of the clock, for a measured range.
StepSums sums_between(const RunTimes& times, const ClockView& view, double t0, double t1);

}  // namespace ui

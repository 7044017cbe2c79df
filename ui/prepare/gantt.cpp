#include "ui/prepare/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ui/prepare/numbers.h"

namespace ui {
namespace {

constexpr double kBucketPixels = 3;

bool has_mark(const StepSpan& s, LaneKind lane) {
  return lane == LaneKind::PoolHit ? s.has_pool_hit : s.has_pool_insert;
}

// Begin and end of the lane's part of a step, as shares of the step.
std::pair<double, double> part_of(const StepSpan& s, LaneKind lane) {
  const double propose = s.propose, forward = propose + s.forward, verify = forward + s.verify;
  switch (lane) {
    case LaneKind::Propose:
      return {0, propose};
    case LaneKind::Target:
      return {propose, forward};
    case LaneKind::Verify:
      return {forward, verify};
    case LaneKind::Commit:
      return {verify, 1};
    case LaneKind::PoolHit:
      return {verify, verify};
    case LaneKind::PoolInsert:
      return {1, 1};
  }
  return {0, 1};
}

LaneBlock slice_of(const RunTimes& times, std::size_t i, LaneKind lane, const ClockView& view) {
  const StepSpan& s = times.steps[i];
  const double b = begin_on(view.clock, times, i, view.wall_origin);
  const double e = end_on(view.clock, times, i, view.wall_origin);
  const auto [from, to] = part_of(s, lane);
  LaneBlock block{b + from * (e - b), b + to * (e - b), i, i};
  block.n_tokens = s.n_tokens;
  block.n_rejected = static_cast<int>(times.sums(i + 1).rejected - s.before.rejected);
  if (lane == LaneKind::Target) block.wasted = s.wasted;
  return block;
}

std::vector<LaneBlock> slices(const RunTimes& times,
                              LaneKind lane,
                              const ClockView& view,
                              std::size_t first,
                              std::size_t last) {
  std::vector<LaneBlock> blocks;
  const bool marks = lane == LaneKind::PoolHit || lane == LaneKind::PoolInsert;
  for (std::size_t i = first; i < last; ++i) {
    if (marks && !has_mark(times.steps[i], lane)) continue;
    blocks.push_back(slice_of(times, i, lane, view));
  }
  return blocks;
}

std::int64_t marks_in(const StepSums& from, const StepSums& to, LaneKind lane) {
  return lane == LaneKind::PoolHit ? to.pool_hits - from.pool_hits
                                   : to.pool_added - from.pool_added;
}

std::vector<LaneBlock> buckets(const RunTimes& times,
                               LaneKind lane,
                               const ClockView& view,
                               std::size_t first,
                               std::size_t last) {
  std::vector<LaneBlock> blocks;
  const bool marks = lane == LaneKind::PoolHit || lane == LaneKind::PoolInsert;
  const double wide = (view.t1 - view.t0) / view.width * kBucketPixels;
  std::size_t i = first;
  while (i < last) {
    // Buckets lie at multiples of their width, so panning does not make them flicker.
    const double b = begin_on(view.clock, times, i, view.wall_origin);
    const double edge = (std::floor(b / wide) + 1) * wide;
    // The step that crosses the edge belongs to the bucket it began in.
    const std::size_t end =
        std::clamp(first_ending_after(view.clock, times, edge, view.wall_origin) + 1, i + 1, last);
    const StepSums &from = times.sums(i), &to = times.sums(end);
    LaneBlock block{b, end_on(view.clock, times, end - 1, view.wall_origin), i, end - 1};
    block.is_bucket = true;
    block.n_tokens = static_cast<int>(to.tokens - from.tokens);
    block.n_rejected = static_cast<int>(to.rejected - from.rejected);
    const double compute = to.compute - from.compute, forward = to.forward - from.forward;
    block.busy =
        static_cast<float>(lane == LaneKind::Target ? forward / compute : 1 - forward / compute);
    if (lane == LaneKind::Target && forward > 0)
      block.wasted = static_cast<float>((to.waste - from.waste) / forward);
    if (!marks || marks_in(from, to, lane) > 0) blocks.push_back(block);
    i = end;
  }
  return blocks;
}

}  // namespace

const char* lane_name(LaneKind kind) {
  static constexpr const char* kNames[] = {"target", "propose",  "verify",
                                           "commit", "pool hit", "pool insert"};
  return kNames[static_cast<int>(kind)];
}

std::vector<LaneBlock> blocks_in_view(const RunTimes& times, LaneKind lane, const ClockView& view) {
  if (times.steps.empty() || !(view.t1 > view.t0) || !(view.width >= 1)) return {};
  const std::size_t first = first_ending_after(view.clock, times, view.t0, view.wall_origin);
  std::size_t last = first_ending_after(view.clock, times, view.t1, view.wall_origin);
  if (last < times.steps.size() && begin_on(view.clock, times, last, view.wall_origin) < view.t1)
    ++last;
  if (static_cast<double>(last - first) * kBucketPixels <= view.width)
    return slices(times, lane, view, first, last);
  return buckets(times, lane, view, first, last);
}

std::vector<float> overview(const RunTimes& times, const ClockView& view, double end, int n) {
  std::vector<float> bars(std::max(n, 0));
  if (times.steps.empty() || !(end > 0)) return bars;
  std::size_t from = 0;
  for (int i = 0; i < n; ++i) {
    const std::size_t to =
        first_ending_after(view.clock, times, end * (i + 1) / n, view.wall_origin);
    bars[i] = static_cast<float>(times.sums(to).tokens - times.sums(from).tokens);
    from = to;
  }
  return bars;
}

std::vector<double> ruler_ticks(const ClockView& view, float min_pixels) {
  std::vector<double> ticks;
  const double range = view.t1 - view.t0;
  if (!(range > 0) || !(view.width > min_pixels)) return ticks;
  const double least = range * min_pixels / view.width;
  double apart = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (apart * factor >= least) {
      apart *= factor;
      break;
    }
  }
  if (view.clock == ClockKind::Step) apart = std::max(apart, 1.0);
  for (double t = std::ceil(view.t0 / apart) * apart; t <= view.t1 && ticks.size() < 1000;
       t += apart)
    ticks.push_back(t);
  return ticks;
}

std::string tick_label(const ClockView& view, double t) {
  if (view.clock == ClockKind::Step) return fmt::format("{:.0f}", t);
  const double range = view.t1 - view.t0;
  // A tick found by adding steps up can lie a hair before zero: it is zero.
  if (std::abs(t) < range * 1e-6) t = 0;
  if (range < 2e5) return fmt::format("{:.0f} us", t / 1e3);
  if (range < 2e6) return fmt::format("{:.1f} ms", t / 1e6);
  if (range < 2e9) return fmt::format("{:.0f} ms", t / 1e6);
  return fmt::format("{:.1f} s", t / 1e9);
}

StepSums sums_between(const RunTimes& times, const ClockView& view, double t0, double t1) {
  if (t1 < t0) std::swap(t0, t1);
  const StepSums& a = times.sums(first_ending_after(view.clock, times, t0, view.wall_origin));
  const StepSums& b = times.sums(first_ending_after(view.clock, times, t1, view.wall_origin));
  StepSums d;
  d.tokens = b.tokens - a.tokens;
  d.rows = b.rows - a.rows;
  d.proposed = b.proposed - a.proposed;
  d.accepted = b.accepted - a.accepted;
  d.rejected = b.rejected - a.rejected;
  d.pool_hits = b.pool_hits - a.pool_hits;
  d.pool_added = b.pool_added - a.pool_added;
  d.compute = b.compute - a.compute;
  d.forward = b.forward - a.forward;
  d.waste = b.waste - a.waste;
  return d;
}

}  // namespace ui

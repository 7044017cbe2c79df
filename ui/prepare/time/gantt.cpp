#include "ui/prepare/time/gantt.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/figure.h"

namespace ui {
namespace {

using engine::Nanoseconds;

constexpr double kColumnPixels = 3;

// Converts the times of slices to the clock of a view: nanoseconds per unit of the clock, and its origin.
struct Axis {
  double unit = 1, origin = 0;

  Axis(const ClockView& view, const RunTimes& times) {
    if (counts(view.clock)) unit = static_cast<double>(engine::kUnit);
    if (view.clock == ClockKind::Normalised) unit = times.percent_compute();
    if (view.clock == ClockKind::Wall) origin = view.wall_origin;
  }
  double on_view(Nanoseconds t) const { return static_cast<double>(t) / unit - origin; }
  Nanoseconds from_view(double t) const {
    // Clamp to 64 bits.
    return static_cast<Nanoseconds>(std::clamp((t + origin) * unit, -4e18, 4e18));
  }
};

LaneBlock block_of(const engine::Slice& slice,
                   const RunTimes& times,
                   LaneKind lane,
                   const Axis& axis) {
  LaneBlock block{axis.on_view(slice.start), axis.on_view(slice.end), slice.kind, slice.step};
  const std::size_t i = times.index_of(slice.step);
  if (i == times.steps.size()) return block;
  const StepSpan& s = times.steps[i];
  block.n_tokens = s.n_tokens;
  block.n_rejected = s.n_rejected;
  if (lane == LaneKind::Target) block.wasted = s.wasted;
  if (is_marks(lane) && lane == LaneKind::PoolInsert) block.t0 = block.t1;
  if (is_marks(lane)) block.t1 = block.t0;
  return block;
}

LaneBlock block_of(const engine::Bucket& bucket,
                   Nanoseconds width,
                   LaneKind lane,
                   const Axis& axis) {
  LaneBlock block{axis.on_view(bucket.index * width), axis.on_view((bucket.index + 1) * width),
                  bucket.kind, -1, true};
  block.busy = std::min(1.0f, static_cast<float>(bucket.busy) / static_cast<float>(width));
  if (lane == LaneKind::Target && bucket.busy > 0)
    block.wasted = static_cast<float>(bucket.wasted) / static_cast<float>(bucket.busy);
  block.n_slices = lane == LaneKind::PoolHit      ? bucket.n_pool_hits
                   : lane == LaneKind::PoolInsert ? bucket.n_pool_added
                                                  : bucket.n_slices;
  block.n_rejected = bucket.n_rejected;
  return block;
}

bool is_on(LaneKind lane, const engine::Slice& slice) {
  if (lane == LaneKind::PoolHit) return (slice.flags & engine::kFlagPoolHit) != 0;
  if (lane == LaneKind::PoolInsert) return (slice.flags & engine::kFlagPoolAdded) != 0;
  return slice.end > slice.start;  // a phase that did not occur has no length
}

// The unit of a ruler's labels.
struct TickUnit {
  double size;  // in the unit of the clock
  const char* name;
  int least_decimals = 0;
};

TickUnit tick_unit(const ClockView& view) {
  if (counts(view.clock)) return {1, ""};
  if (view.clock == ClockKind::Normalised) return {1, " %"};
  const double range = view.t1 - view.t0;
  if (range < 2e3) return {1, " ns"};
  if (range < 2e5) return {1e3, " us"};
  if (range < 2e6) return {1e6, " ms", 1};
  if (range < 2e9) return {1e6, " ms"};
  return {1e9, " s", 1};
}

}  // namespace

const char* lane_name(LaneKind kind) {
  static constexpr std::array<const char*, kLaneKinds> kNames{
      "target", "propose", "verify", "commit", "pool hit", "pool insert",
      "rows",   "tokens",  "KV",     "pool",   "choice"};
  return kNames[static_cast<std::size_t>(kind)];
}

engine::LaneKind engine_lane(LaneKind lane) {
  switch (lane) {
    case LaneKind::Propose:
      return engine::LaneKind::Propose;
    case LaneKind::Verify:
      return engine::LaneKind::Verify;
    case LaneKind::Commit:
      return engine::LaneKind::Commit;
    case LaneKind::PoolHit:
    case LaneKind::PoolInsert:
      return engine::LaneKind::Pool;
    default:
      return engine::LaneKind::Target;
  }
}

std::vector<LaneBlock> blocks_in_view(const engine::RunLod& lod,
                                      const RunTimes& times,
                                      LaneKind lane,
                                      const ClockView& view) {
  std::vector<LaneBlock> blocks;
  if (is_counter(lane) || !(view.t1 > view.t0) || !(view.width >= 1)) return blocks;
  const Axis axis(view, times);
  const engine::VisibleLane visible =
      lod.lane(engine_lane(lane))
          .visible(axis.from_view(view.t0), axis.from_view(view.t1) + 1, view.width);
  blocks.reserve(visible.slices.size() + visible.buckets.size());
  for (const engine::Bucket& bucket : visible.buckets) {
    blocks.push_back(block_of(bucket, visible.width, lane, axis));
    if (blocks.back().n_slices == 0 && (is_marks(lane) || bucket.busy == 0)) blocks.pop_back();
  }
  const auto n_buckets = static_cast<std::ptrdiff_t>(blocks.size());
  for (const engine::Slice& slice : visible.slices)
    if (is_on(lane, slice)) blocks.push_back(block_of(slice, times, lane, axis));
  std::inplace_merge(blocks.begin(), blocks.begin() + n_buckets, blocks.end(),
                     [](const LaneBlock& a, const LaneBlock& b) { return a.t0 < b.t0; });
  return blocks;
}

std::optional<std::pair<double, double>> part_of_step(const engine::RunRecord& run,
                                                      const RunTimes& times,
                                                      std::size_t step,
                                                      LaneKind lane,
                                                      const ClockView& view) {
  if (step >= run.steps.size() || is_counter(lane)) return std::nullopt;
  const Axis axis(view, times);
  for (const engine::LaneSlice& part :
       engine::slices_of(run, run.steps.head(step), engine_clock(view.clock)))
    if (part.lane == engine_lane(lane))
      return std::pair{axis.on_view(part.slice.start), axis.on_view(part.slice.end)};
  return std::nullopt;
}

std::vector<StepColumn> step_columns(const RunTimes& times, const ClockView& view) {
  std::vector<StepColumn> columns;
  if (times.steps.empty() || !(view.t1 > view.t0) || !(view.width >= 1)) return columns;
  const double wide = (view.t1 - view.t0) / view.width * kColumnPixels;
  std::size_t i = first_ending_after(view.clock, times, view.t0, view.wall_origin);
  while (i < times.steps.size()) {
    const double begin = begin_on(view.clock, times, i, view.wall_origin);
    if (begin >= view.t1) break;
    // Columns begin at multiples of their width, so that they do not flicker while panning.
    const double edge = (std::floor(begin / wide) + 1) * wide;
    double end = end_on(view.clock, times, i, view.wall_origin);
    std::size_t next = i + 1;
    if (end < edge) {
      // A step belongs to the column in which it starts.
      next = std::max(next, first_ending_after(view.clock, times, edge, view.wall_origin));
      if (next < times.steps.size() && begin_on(view.clock, times, next, view.wall_origin) < edge)
        ++next;
      end = end_on(view.clock, times, next - 1, view.wall_origin);
    }
    columns.push_back({begin, end, i, next});
    i = next;
  }
  return columns;
}

std::vector<float> overview(
    const RunTimes& times, const ClockView& view, double begin, double end, int n) {
  std::vector<float> bars(std::max(n, 0));
  if (times.steps.empty() || !(end > begin)) return bars;
  StepSums from;
  for (int i = 0; i < n; ++i) {
    const double edge = begin + (end - begin) * (i + 1) / n;
    const StepSums to = times.sums(first_ending_after(view.clock, times, edge, view.wall_origin));
    bars[i] = static_cast<float>(to.tokens - from.tokens);
    from = to;
  }
  return bars;
}

double closest_range(ClockKind clock) {
  return counts(clock) ? 2 : clock == ClockKind::Normalised ? 0.001 : 1000;
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
  if (counts(view.clock)) apart = std::max(apart, 1.0);
  for (double t = std::ceil(view.t0 / apart) * apart; t <= view.t1 && ticks.size() < 1000;
       t += apart)
    ticks.push_back(t);
  return ticks;
}

std::vector<std::string> tick_labels(const ClockView& view, std::span<const double> ticks) {
  std::vector<std::string> labels;
  if (view.empty) return std::vector<std::string>(ticks.size());
  const TickUnit unit = tick_unit(view);
  const double apart = ticks.size() > 1 ? ticks[1] - ticks[0] : view.t1 - view.t0;
  // The decimals that a distance of 1, 2 or 5 times a power of ten needs; the summand absorbs rounding.
  const auto needed = static_cast<int>(std::ceil(-std::log10(apart / unit.size) - 1e-6));
  const int n_decimals = std::clamp(needed, unit.least_decimals, 12);
  for (double t : ticks) {
    // Rounding can move a tick slightly below zero.
    if (std::abs(t) < apart * 1e-6) t = 0;
    labels.push_back(fmt::format("{:.{}f}{}", t / unit.size, n_decimals, unit.name));
  }
  return labels;
}

std::string length_words(ClockKind clock, double length) {
  if (clock == ClockKind::Step) return fmt::format("{:.0f} steps", length);
  if (clock == ClockKind::Position) return fmt::format("{:.0f} positions", length);
  if (clock == ClockKind::Normalised) return fmt::format("{:.3g} % of the run", length);
  return short_time(length);
}

StepSums sums_between(const RunTimes& times, const ClockView& view, double t0, double t1) {
  return times.sums(steps_ending_in(view.clock, times, t0, t1, view.wall_origin));
}

}  // namespace ui

#include "ui/prepare/run_times.h"

#include <algorithm>

namespace ui {
namespace {

StepSpan span_of(const engine::StepHead& step, const StepSums& before, double compute0) {
  StepSpan s;
  s.step = step.begun.step;
  s.wall0 = static_cast<double>(step.begun.t);
  s.wall1 = std::max(s.wall0, static_cast<double>(step.ended.t));
  const engine::StepEnded& e = step.ended;
  const double own = static_cast<double>(e.propose + e.forward + e.verify + e.commit);
  s.compute0 = std::max(compute0, static_cast<double>(step.begun.compute));
  s.compute1 = s.compute0 + std::max(own, 1.0);
  if (own > 0) {
    s.propose = static_cast<float>(e.propose / own);
    s.forward = static_cast<float>(e.forward / own);
    s.verify = static_cast<float>(e.verify / own);
    s.commit = static_cast<float>(e.commit / own);
  } else {
    s.forward = 1;
  }
  s.n_rows = std::max(step.begun.n_rows, step.n_rows);
  s.n_tokens = step.n_tokens;
  if (s.n_rows > s.n_tokens) s.wasted = 1 - static_cast<float>(s.n_tokens) / s.n_rows;
  s.has_rejection = step.n_rejected > 0;
  s.before = before;
  return s;
}

void add(StepSums& sums, const StepSpan& s, const engine::StepHead& step) {
  sums.tokens += s.n_tokens;
  sums.rows += s.n_rows;
  sums.proposed += step.n_proposed;
  sums.accepted += step.n_accepted;
  sums.rejected += step.n_rejected;
  sums.pool_hits += s.has_pool_hit;
  sums.pool_added += s.has_pool_insert;
  const double own = s.compute1 - s.compute0;
  sums.compute += own;
  sums.forward += own * s.forward;
  sums.waste += own * s.forward * s.wasted;
}

}  // namespace

const char* clock_name(ClockKind clock) {
  return clock == ClockKind::Wall ? "wall ms" : clock == ClockKind::Compute ? "compute ms" : "step";
}

const char* clock_unit(ClockKind clock) {
  return clock == ClockKind::Step ? "" : "ms";
}

void extend(RunTimes& times, const engine::RunRecord& run) {
  times.run = run.id();
  while (times.steps.size() < run.steps.size()) {
    const engine::StepHead step = run.steps.head(times.steps.size());
    if (!step.complete) break;
    StepSpan s = span_of(step, times.total, times.end_compute());
    s.has_pool_hit = step.n_pool_hits > 0;
    s.has_pool_insert = step.n_pool_added > 0;
    add(times.total, s, step);
    times.steps.push_back(s);
  }
}

double begin_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin) {
  const StepSpan& s = times.steps[i];
  if (clock == ClockKind::Wall) return s.wall0 - wall_origin;
  return clock == ClockKind::Compute ? s.compute0 : static_cast<double>(i);
}

double end_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin) {
  const StepSpan& s = times.steps[i];
  if (clock == ClockKind::Wall) return s.wall1 - wall_origin;
  return clock == ClockKind::Compute ? s.compute1 : static_cast<double>(i + 1);
}

std::size_t first_ending_after(ClockKind clock,
                               const RunTimes& times,
                               double t,
                               double wall_origin) {
  std::size_t low = 0, high = times.steps.size();
  while (low < high) {
    const std::size_t mid = (low + high) / 2;
    if (end_on(clock, times, mid, wall_origin) > t)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

std::size_t steps_shown(const RunTimes& times, double compute) {
  // Half a nanosecond of grace: the end of a step, taken through another clock and back, is itself.
  return first_ending_after(ClockKind::Compute, times, compute + 0.5, 0);
}

double on_clock(ClockKind clock, const RunTimes& times, double compute, double wall_origin) {
  if (clock == ClockKind::Compute || times.steps.empty()) return compute;
  const std::size_t i =
      std::min(first_ending_after(ClockKind::Compute, times, compute, 0), times.steps.size() - 1);
  const StepSpan& s = times.steps[i];
  const double f = std::clamp((compute - s.compute0) / (s.compute1 - s.compute0), 0.0, 1.0);
  const double b = begin_on(clock, times, i, wall_origin);
  return b + f * (end_on(clock, times, i, wall_origin) - b);
}

double to_compute(ClockKind clock, const RunTimes& times, double t, double wall_origin) {
  if (clock == ClockKind::Compute || times.steps.empty()) return t;
  const std::size_t i =
      std::min(first_ending_after(clock, times, t, wall_origin), times.steps.size() - 1);
  const double b = begin_on(clock, times, i, wall_origin);
  const double e = end_on(clock, times, i, wall_origin);
  const double f = e > b ? std::clamp((t - b) / (e - b), 0.0, 1.0) : 1.0;
  const StepSpan& s = times.steps[i];
  return s.compute0 + f * (s.compute1 - s.compute0);
}

}  // namespace ui

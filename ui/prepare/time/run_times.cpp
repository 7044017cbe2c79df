#include "ui/prepare/time/run_times.h"

#include <algorithm>
#include <array>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

StepSpan span_of(const engine::StepHead& step, double compute0, int position) {
  StepSpan s;
  s.step = step.begun.step;
  s.position = step.n_tokens > 0 ? std::max(position, step.first_pos) : position;
  s.wall0 = static_cast<double>(step.begun.t);
  s.wall1 = std::max(s.wall0, static_cast<double>(step.ended.t));
  const engine::StepEnded& e = step.ended;
  const double own = static_cast<double>(e.propose + e.forward + e.verify + e.commit);
  s.compute0 = std::max(compute0, static_cast<double>(step.begun.compute));
  s.compute1 = s.compute0 + std::max(own, 1.0);
  if (own > 0) {
    s.propose = static_cast<float>(static_cast<double>(e.propose) / own);
    s.forward = static_cast<float>(static_cast<double>(e.forward) / own);
    s.verify = static_cast<float>(static_cast<double>(e.verify) / own);
    s.commit = static_cast<float>(static_cast<double>(e.commit) / own);
  } else {
    s.forward = 1;
  }
  s.n_rows = std::max(step.begun.n_rows, step.n_rows);
  s.n_tokens = step.n_tokens;
  if (s.n_rows > s.n_tokens)
    s.wasted = 1 - static_cast<float>(s.n_tokens) / static_cast<float>(s.n_rows);
  s.n_proposed = step.n_proposed;
  s.n_accepted = step.n_accepted;
  s.n_rejected = step.n_rejected;
  s.has_pool_hit = step.n_pool_hits > 0;
  s.has_pool_insert = step.n_pool_added > 0;
  s.is_chosen = step.chosen > 0;
  return s;
}

void add(StepSums& sums, const StepSpan& s) {
  sums.tokens += s.n_tokens;
  sums.rows += s.n_rows;
  sums.proposed += s.n_proposed;
  sums.accepted += s.n_accepted;
  sums.rejected += s.n_rejected;
  sums.pool_hits += s.has_pool_hit;
  sums.pool_added += s.has_pool_insert;
  sums.chosen += s.is_chosen;
  const double own = s.compute1 - s.compute0;
  sums.compute += own;
  sums.forward += own * s.forward;
  sums.waste += own * s.forward * s.wasted;
}

}  // namespace

const char* clock_name(ClockKind clock) {
  static constexpr std::array<const char*, kClocks> kNames{"wall ms", "compute ms", "steps",
                                                           "positions", "% of the run"};
  return kNames[static_cast<std::size_t>(clock)];
}

const char* clock_rule(ClockKind clock) {
  static constexpr std::array<const char*, kClocks> kRules{
      "in wall time: ", "equal ", "aligned by ", "aligned by ", "aligned by "};
  return kRules[static_cast<std::size_t>(clock)];
}

engine::Clock engine_clock(ClockKind clock) {
  switch (clock) {
    case ClockKind::Wall:
      return engine::Clock::Wall;
    case ClockKind::Step:
      return engine::Clock::Step;
    case ClockKind::Position:
      return engine::Clock::Position;
    case ClockKind::Compute:
    case ClockKind::Normalised:
      break;
  }
  return engine::Clock::Compute;
}

void extend(RunTimes& times, const engine::RunRecord& run) {
  times.run = run.id();
  times.first_position = run.first_generated();
  while (times.steps.size() < run.steps.size()) {
    const engine::StepHead step = run.steps.head(times.steps.size());
    if (!step.complete) break;
    if (times.steps.size() % RunTimes::kSumsEvery == 0) times.sums_at.push_back(times.total);
    const int position = times.steps.empty()
                             ? times.first_position
                             : times.steps.back().position + times.steps.back().n_tokens;
    times.steps.push_back(span_of(step, times.end_compute(), position));
    add(times.total, times.steps.back());
  }
}

StepSums RunTimes::sums(std::size_t n) const {
  if (n >= steps.size()) return total;
  StepSums sums = sums_at[n / kSumsEvery];
  for (std::size_t i = n / kSumsEvery * kSumsEvery; i < n; ++i) add(sums, steps[i]);
  return sums;
}

StepSums RunTimes::sums(const StepRange& range) const {
  return difference(sums(range.end), sums(range.first));
}

StepSums difference(const StepSums& after, const StepSums& before) {
  StepSums d;
  d.tokens = after.tokens - before.tokens;
  d.rows = after.rows - before.rows;
  d.proposed = after.proposed - before.proposed;
  d.accepted = after.accepted - before.accepted;
  d.rejected = after.rejected - before.rejected;
  d.pool_hits = after.pool_hits - before.pool_hits;
  d.pool_added = after.pool_added - before.pool_added;
  d.chosen = after.chosen - before.chosen;
  d.compute = after.compute - before.compute;
  d.forward = after.forward - before.forward;
  d.waste = after.waste - before.waste;
  return d;
}

std::size_t RunTimes::index_of(engine::StepId step) const {
  const auto at = std::ranges::lower_bound(steps, step, {}, &StepSpan::step);
  const bool found = at != steps.end() && at->step == step;
  return found ? static_cast<std::size_t>(at - steps.begin()) : steps.size();
}

double begin_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin) {
  const StepSpan& s = times.steps[i];
  if (clock == ClockKind::Wall) return s.wall0 - wall_origin;
  if (clock == ClockKind::Compute) return s.compute0;
  if (clock == ClockKind::Normalised) return s.compute0 / times.percent_compute();
  return static_cast<double>(clock == ClockKind::Step ? s.step : s.position);
}

double end_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin) {
  const StepSpan& s = times.steps[i];
  if (clock == ClockKind::Wall) return s.wall1 - wall_origin;
  if (clock == ClockKind::Compute) return s.compute1;
  if (clock == ClockKind::Normalised) return s.compute1 / times.percent_compute();
  return static_cast<double>(clock == ClockKind::Step ? s.step + 1 : s.position + s.n_tokens);
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

StepRange steps_ending_in(
    ClockKind clock, const RunTimes& times, double t0, double t1, double wall_origin) {
  const auto [from, to] = std::minmax(t0, t1);
  return {first_ending_after(clock, times, from, wall_origin),
          first_ending_after(clock, times, to, wall_origin)};
}

std::size_t steps_shown(const RunTimes& times, double compute) {
  // Allows half a nanosecond, because converting the end of a step to another clock and back may
  // round.
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

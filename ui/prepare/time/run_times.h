// Where each complete step of a run lies on the clocks a panel can show, with running sums, so that
// any range of any length is summed in two look-ups: a million steps cost what ten do.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/timeline.h"

namespace ui {

/// The engine's, and Normalised: percent of the run's own compute so far, so that runs of different
/// lengths begin and end together.
enum class ClockKind : std::uint8_t { Wall, Compute, Step, Position, Normalised };
inline constexpr int kClocks = 5;
const char* clock_name(ClockKind clock);  // "wall ms", "compute ms", "steps", "positions", ...
/// By what rule lanes stand below each other, for Compare: words to go before the clock's name.
const char* clock_rule(ClockKind clock);
/// The engine's clock whose slices are drawn.
engine::Clock engine_clock(ClockKind clock);
/// Whether the clock counts (steps, positions) instead of measuring nanoseconds.
constexpr bool counts(ClockKind clock) {
  return clock == ClockKind::Step || clock == ClockKind::Position;
}

/// Sums over all steps before some point.
struct StepSums {
  std::int64_t tokens = 0, rows = 0, proposed = 0, accepted = 0, rejected = 0, pool_hits = 0,
               pool_added = 0;
  double compute = 0, forward = 0, waste = 0;  // ns; waste: forward time of rows thrown away
};

struct StepSpan {
  engine::StepId step = 0;
  int position = 0;                                        // of the first token it committed
  double wall0 = 0, wall1 = 0;                             // ns since the session began
  double compute0 = 0, compute1 = 0;                       // ns of the run's own compute
  float propose = 0, forward = 0, verify = 0, commit = 0;  // shares of the step, sum 1
  float wasted = 0;                                        // share of the forward's rows
  int n_tokens = 0, n_rows = 0;
  int n_proposed = 0, n_accepted = 0, n_rejected = 0;
  bool has_pool_hit = false, has_pool_insert = false;
};

struct RunTimes {
  engine::RunId run = 0;
  int first_position = 0;  // of the first generated token
  std::deque<StepSpan> steps;
  std::vector<StepSums> sums_at;  // [i] over the first i * kSumsEvery steps
  StepSums total;

  static constexpr std::size_t kSumsEvery = 16;
  double end_compute() const { return steps.empty() ? 0 : steps.back().compute1; }
  /// Own compute of one percent of the run so far, ns.
  double percent_compute() const { return steps.empty() ? 1 : steps.back().compute1 / 100; }
  /// Sums of the first n steps.
  StepSums sums(std::size_t n) const;
  /// Index of a step; steps.size() if it is not there, or not complete.
  std::size_t index_of(engine::StepId step) const;
};

/// Takes over the steps that have become complete since the last call.
void extend(RunTimes& times, const engine::RunRecord& run);

/// Begin and end of a step on a clock: ns, steps, positions or percent. Wall time counts from
/// `wall_origin`.
double begin_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin);
double end_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin);
/// The first step that ends after `t` on the clock; steps.size() if none does.
std::size_t first_ending_after(ClockKind clock,
                               const RunTimes& times,
                               double t,
                               double wall_origin);
/// How many steps are complete at the playhead (own compute, ns).
std::size_t steps_shown(const RunTimes& times, double compute);
/// The playhead's place on a clock, and back.
double on_clock(ClockKind clock, const RunTimes& times, double compute, double wall_origin);
double to_compute(ClockKind clock, const RunTimes& times, double t, double wall_origin);

}  // namespace ui

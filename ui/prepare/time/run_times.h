// The position of each complete step of a run on every clock that a panel can show, with prefix sums: summing a range of any length
// takes two look-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/event/event.h"

namespace engine {
enum class Clock : std::uint8_t;
struct RunRecord;
}  // namespace engine

namespace ui {

/// The engine's clocks, and Normalised: percent of the run's own compute so far, so that runs of different lengths are aligned at both
/// ends.
enum class ClockKind : std::uint8_t { Wall, Compute, Step, Position, Normalised };
inline constexpr int kClocks = 5;
/// Returns the clock's name: "wall ms", "compute ms", "steps", "positions", ...
const char* clock_name(ClockKind clock);
/// Returns words before the clock's name on the screen Compare, which say how lanes are aligned: "equal ", "aligned by ".
const char* clock_rule(ClockKind clock);
/// Returns the engine's clock whose slices are drawn for a clock.
engine::Clock engine_clock(ClockKind clock);
/// Returns true if the clock counts steps or positions instead of measuring time.
constexpr bool counts(ClockKind clock) {
  return clock == ClockKind::Step || clock == ClockKind::Position;
}

/// Sums over a number of steps.
struct StepSums {
  std::int64_t tokens = 0, rows = 0, proposed = 0, accepted = 0, rejected = 0, pool_hits = 0,
               pool_added = 0;
  std::int64_t chosen = 0;  // steps whose size the decoder chose
  double compute = 0, forward = 0,
         waste = 0;  // ns; waste: forward time of rows without a committed token
};

/// Returns the sums over the steps between two numbers of first steps.
StepSums difference(const StepSums& after, const StepSums& before);

/// Consecutive steps of a run: the indices [first, end).
struct StepRange {
  std::size_t first = 0, end = 0;
  /// The first `n` steps.
  StepRange(std::size_t n) : end(n) {}
  /// The steps [first, end).
  StepRange(std::size_t first_step, std::size_t end_step) : first(first_step), end(end_step) {}
  /// Returns the number of steps.
  std::size_t size() const { return end > first ? end - first : 0; }
  /// Returns the range without steps that do not exist.
  StepRange within(std::size_t n) const { return {first < n ? first : n, end < n ? end : n}; }
  bool operator==(const StepRange&) const = default;
};

/// A complete step on all clocks.
struct StepSpan {
  engine::StepId step = 0;
  int position = 0;                                        // position of the first committed token
  double wall0 = 0, wall1 = 0;                             // ns since the session began
  double compute0 = 0, compute1 = 0;                       // ns of the run's own compute
  float propose = 0, forward = 0, verify = 0, commit = 0;  // shares of the step, sum 1
  float wasted = 0;  // share of rows without a committed token
  int n_tokens = 0, n_rows = 0;
  int n_proposed = 0, n_accepted = 0, n_rejected = 0;
  bool has_pool_hit = false, has_pool_insert = false, is_chosen = false;
};

/// All complete steps of a run; extend() appends.
struct RunTimes {
  engine::RunId run = 0;
  int first_position = 0;  // position of the first generated token
  std::deque<StepSpan> steps;
  std::vector<StepSums> sums_at;  // [i]: sums over the first i * kSumsEvery steps
  StepSums total;

  static constexpr std::size_t kSumsEvery = 16;
  /// Returns the own compute of all steps, ns.
  double end_compute() const { return steps.empty() ? 0 : steps.back().compute1; }
  /// Returns the own compute of one percent of the run so far, ns.
  double percent_compute() const { return steps.empty() ? 1 : steps.back().compute1 / 100; }
  /// Returns the sums of the first n steps.
  StepSums sums(std::size_t n) const;
  /// Returns the sums over a range of steps.
  StepSums sums(const StepRange& range) const;
  /// Returns the index of a step; steps.size() if the step does not exist or is not complete.
  std::size_t index_of(engine::StepId step) const;
};

/// Appends the steps that were completed since the last call.
void extend(RunTimes& times, const engine::RunRecord& run);

/// Returns the start of step `i` on a clock, in ns, steps, positions or percent. Wall time counts from `wall_origin`.
double begin_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin);
/// Returns the end of step `i` on a clock, in the same units.
double end_on(ClockKind clock, const RunTimes& times, std::size_t i, double wall_origin);
/// Returns the index of the first step that ends after `t` on the clock; steps.size() if no step does.
std::size_t first_ending_after(ClockKind clock,
                               const RunTimes& times,
                               double t,
                               double wall_origin);
/// Returns the steps that end in (t0, t1] on the clock.
StepRange steps_ending_in(
    ClockKind clock, const RunTimes& times, double t0, double t1, double wall_origin);
/// Returns the number of steps that are complete at the playhead, which is given as own compute in ns.
std::size_t steps_shown(const RunTimes& times, double compute);
/// Converts own compute (ns) to a time on a clock.
double on_clock(ClockKind clock, const RunTimes& times, double compute, double wall_origin);
/// Converts a time on a clock to own compute (ns).
double to_compute(ClockKind clock, const RunTimes& times, double t, double wall_origin);

}  // namespace ui

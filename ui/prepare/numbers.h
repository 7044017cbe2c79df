// The figures of a run up to the playhead, each with its formula and the integers that it is computed from.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "ui/prepare/figure.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

struct RunTimes;
struct StepRange;
struct Tally;

/// Returns the ids of the steps in `set`, among `range`; oldest first.
std::vector<engine::StepId> steps_in_set(const RunTimes& times, StepRange range, StepSet set);
/// Returns the property that the steps of a set share, as a predicate: "proposed tokens".
const char* step_set_words(StepSet set);
/// Returns the steps that committed exactly `n_tokens` tokens.
std::vector<engine::StepId> steps_that_committed(const RunTimes& times,
                                                 StepRange range,
                                                 int n_tokens);
/// Returns the steps that accepted or rejected a proposal at distance `place` from the prefix; 1 is the next position.
std::vector<engine::StepId> steps_verifying(const engine::RunRecord& run,
                                            StepRange range,
                                            int place);

/// Returns the steps for which the decoder chose a size from `smallest` to `largest`.
std::vector<engine::StepId> steps_of_size(const engine::RunRecord& run,
                                          StepRange range,
                                          int smallest,
                                          int largest);

/// A row of the table of chosen sizes: one size, or several neighbours together. The values are means per step.
struct SizeRow {
  int smallest = 0, largest = 0;
  int n_steps = 0, n_probes = 0;
  double expected_tokens = 0, tokens = 0;
  double expected_ms = 0, ms = 0;
};
/// Returns the table of a tally. Size 0 has a row of its own; larger sizes are grouped into at most `n_rows` rows in all, with about equally many
/// steps in each. Empty if no size was chosen.
std::vector<SizeRow> size_table(const Tally& tally, std::size_t n_rows);

/// The window warns after this many consecutive steps without an accepted proposal.
inline constexpr std::size_t kStepsWithoutAcceptance = 20;
/// Returns the newest kStepsWithoutAcceptance steps that proposed tokens, oldest first, if none of their proposals was accepted; else empty.
/// Steps without proposals are skipped.
std::vector<engine::StepId> steps_without_acceptance(const RunTimes& times, StepRange range);

/// Verified proposals at one distance from the prefix.
struct AcceptanceAt {
  int accepted = 0, verified = 0;
};

/// Steps for which the decoder chose the same size, with their expected and actual tokens and time.
struct SizeTally {
  int n_steps = 0, n_probes = 0;  // n_probes: steps whose size was chosen only to learn from it
  double expected_tokens = 0, expected_ms = 0;
  double tokens = 0, ms = 0;
};

/// Counts over steps.
struct TallyCounts {
  std::vector<AcceptanceAt> by_place;  // [d - 1]: counts at distance d from the prefix
  std::vector<int> committed;          // [n]: number of steps that committed n tokens
  std::map<int, SizeTally> by_size;    // steps whose size was chosen; 0: without guesses
};
/// Counts over the steps from `first` on, `n_steps` in all with those before it; advance() updates them.
struct Tally : TallyCounts {
  /// Number of steps between two copies of the counts. A jump of the playhead continues from a copy.
  static constexpr std::size_t kKeptEvery = 512;
  engine::RunId run = 0;
  std::size_t first = 0, n_steps = 0;
  std::vector<TallyCounts> kept;  // [k]: after (k + 1) * kKeptEvery steps
};
/// Changes the tally to a range of the run's steps; recounts all of them if the run or the first step of the range changed.
void advance(Tally& tally, const engine::RunRecord& run, StepRange range);

/// The figures of the panel Numbers.
struct Numbers {
  Figure tokens_per_second, tokens_per_step, speedup, step_median;
  std::vector<Figure> more;  // acceptance, waste, time to first token, counts
};
/// Returns the figure in place of the speed-up of a part of a run.
Figure speedup_of_part();
/// Computes the figures of a range of complete steps. A range that begins after the first step has no speed-up, one that begins after the first
/// token no time to it. Figures that the decoder counts over a whole run are left out if the range is a part.
Numbers numbers_of(const engine::Timeline& timeline,
                   const engine::RunRecord& run,
                   const RunTimes& times,
                   StepRange range);

/// A quantity that is drawn as a line over recent steps.
enum class Series { TokensPerSecond, TokensPerStep, StepMs, WasteShare };
/// Returns the last `n` values of a series in a range, oldest first; tokens per second are averaged over eight steps.
std::vector<float> series_of(const RunTimes& times, StepRange range, Series series, std::size_t n);

/// Own compute per step in `n_bins` equal bins from 0 to top_ms (1.25 times the 99th percentile); longer steps count in the last bin.
struct StepHistogram {
  std::vector<int> count;
  double top_ms = 0;
};
/// Counts the steps of a range by their own compute.
StepHistogram step_histogram(const RunTimes& times, StepRange range, int n_bins);
/// Returns the steps counted in one bin.
std::vector<engine::StepId> steps_in_bin(const RunTimes& times,
                                         StepRange range,
                                         const StepHistogram& histogram,
                                         int bin);

}  // namespace ui

// The figures of a race that was repeated: median and quartiles over the repeats, and the load of the machine meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/measure/spread.h"
#include "engine/event/event.h"
#include "ui/prepare/figure.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// Returns the runs of a lane in all repeats of its race, in order; the run alone if it is not repeated.
std::vector<const engine::RunRecord*> repeats_of(const engine::Timeline& timeline,
                                                 const engine::RunRecord& run);

/// The figures of a lane over its finished repeats.
struct RepeatFigures {
  int n_done = 0, n_all = 1;  // repeats that ended by themselves, and all that were requested
  engine::Spread tokens_per_second, step_ms, tokens_per_step, speedup;
  double stolen_percent = -1;  // share of the processors' time taken by the hypervisor; -1: unknown
  double load_average = -1;    // mean of the samples; -1: unknown
};
/// Computes them. Speed-ups are those against plain decoding in the same repeat.
RepeatFigures repeat_figures(const engine::Timeline& timeline, const engine::RunRecord& run);

/// Returns the number of runs that have ended; only then do the figures of repeats change.
std::size_t n_ended(const engine::Timeline& timeline);
/// Returns "median of 10 (q1 to q3)"; while repeats are missing "median of 3, 10 requested (q1 to q3)".
std::string repeat_words(const RepeatFigures& figures);
/// Returns "87.1 (85.0 to 88.2)"; "-" without values.
std::string spread_words(const engine::Spread& spread);
/// Returns "stolen 0.2 %, load 1.4": the stolen share of processor time and the load average; "-" for unknown values.
std::string load_words(const RepeatFigures& figures);
/// Returns the four spreads as figures with their formulas, and the load.
std::vector<Figure> figures_of(const RepeatFigures& figures);

}  // namespace ui

// The figures of a race that was repeated: median and quartiles over the repeats, and the load of the machine meanwhile.
#pragma once

#include <vector>

#include "engine/base/measure/spread.h"

namespace engine {

class Timeline;
struct RunRecord;

/// Returns the runs of a lane in all repeats of its race, in order; the run alone if it is not repeated.
std::vector<const RunRecord*> repeats_of(const Timeline& timeline, const RunRecord& run);

/// The figures of a lane over its finished repeats.
struct RepeatFigures {
  int n_done = 0, n_all = 1;  // repeats that ended by themselves, and all that were requested
  Spread tokens_per_second, step_ms, tokens_per_step, speedup;
  double stolen_percent = -1;  // share of the processors' time taken by the hypervisor; -1: unknown
  double load_average = -1;    // mean of the samples; -1: unknown
};
/// Computes them. Speed-ups are those against plain decoding in the same repeat.
RepeatFigures repeat_figures(const Timeline& timeline, const RunRecord& run);

}  // namespace engine

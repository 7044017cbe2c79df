// Measures the time of a model's steps by their number of rows, once per load, before the first run
// whose decoder chooses sizes (engine/decode/control). The result is kept in a file
// (step_times.h), so that later loads need not measure.
#pragma once

#include <functional>
#include <vector>

#include "engine/store/step_times.h"

namespace engine {

struct LoadedModel;

/// Measures forwards of 1 to 32 rows. Leaves out those for which the time does not suffice, and
/// repeats all of them while it does.
/// @param most_ms  the time that may be spent
/// @param now_ms   the clock
std::vector<StepTime> measure_steps(LanguageModel& model,
                                    double most_ms,
                                    const std::function<double()>& now_ms);

/// Fills model.control with the times of steps, from the file or by measuring for at most 200 ms. A
/// file that cannot be read or written is ignored.
void calibrate(LoadedModel& model);

}  // namespace engine

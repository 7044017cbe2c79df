// Chooses how many threads of the CPU share an operation: one for every processor, for every core, or for the fast cores
// alone (kernels/processors.h), whichever is fastest with the model at hand.
#pragma once

#include <span>
#include <string>

#include "engine/store/step_times.h"

namespace engine {

/// Sets the active threads of the model's device. Measures forwards of 1 and 8 rows with each number of threads that could
/// be the fastest, at most three times in turn, for about 200 ms. Of the numbers within 3 % of the shortest time it takes
/// the smallest. The times are kept in a file. Does nothing if only one number is possible.
/// @param weights_hash  of the model; empty: unknown
void choose_threads(Model& model, const std::string& weights_hash);

/// The number that choose_threads() takes.
/// @param times  n_rows is a number of threads; not empty
int fewest_fast_threads(std::span<const StepTime> times);

}  // namespace engine

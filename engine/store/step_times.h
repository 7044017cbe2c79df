// Measures the times of a model's forwards and keeps them in a file of the user's cache, so that later loads need not
// measure them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace engine {

class LanguageModel;
class Model;

/// The time of a step with n_rows rows. thread_choice.h uses it for a number of threads instead.
struct StepTime {
  int n_rows = 0;
  double ms = 0;
};

/// The clock of the measurements, in ms.
double clock_ms();
/// Measures a forward of a chain of rows without a prefix, in ms.
double forward_ms(LanguageModel& model, int n_rows, const std::function<double()>& now_ms);

/// The key of a model's times: weights, dtype, type of the KV cache, scale, processor, device, kernels, active threads and
/// program version.
/// @param weights_hash  empty: unknown; then the key is empty and nothing is kept
std::string times_key(const Model& model, const std::string& weights_hash);
/// The times that were kept under this key; none if there is no file or it cannot be read.
std::vector<StepTime> kept_times(const std::string& key);
/// Keeps the times under this key. A file that cannot be written is ignored.
void keep_times(const std::string& key, const std::vector<StepTime>& times);

/// The folder of these files: $XDG_CACHE_HOME/decoscope/steps, else ~/.cache/decoscope/steps; empty
/// if neither is known.
std::string calibration_folder();

}  // namespace engine

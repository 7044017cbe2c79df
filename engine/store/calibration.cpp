#include "engine/store/calibration.h"

#include <algorithm>
#include <utility>

#include "engine/decode/control/step_control.h"
#include "engine/store/model_store.h"

namespace engine {
namespace {

constexpr double kMostMs = 200;
constexpr int kRowCounts[] = {1, 2, 4, 8, 16, 3, 6, 12, 24, 32};
constexpr int kRepeats = 3;

}  // namespace

std::vector<StepTime> measure_steps(LanguageModel& model,
                                    double most_ms,
                                    const std::function<double()>& now_ms) {
  const double begun = now_ms();
  std::vector<StepTime> times;
  StepTime longest{1, forward_ms(model, 1, now_ms)};  // not counted: it also takes memory
  const auto has_time_for = [&](int n_rows) {
    const double growth = static_cast<double>(n_rows) / longest.n_rows;
    return now_ms() - begun + longest.ms * std::max(1.0, growth) <= most_ms;
  };
  for (int repeat = 0; repeat < kRepeats; repeat++) {
    for (const int n_rows : kRowCounts) {
      if (n_rows >= model.max_seq_len() || !has_time_for(n_rows)) continue;
      times.push_back({n_rows, forward_ms(model, n_rows, now_ms)});
      if (times.back().ms > longest.ms) longest = times.back();
    }
  }
  return times;
}

void calibrate(LoadedModel& model) {
  if (std::exchange(model.is_timed, true)) return;
  const std::string key = times_key(*model.model, model.weights_hash);
  std::vector<StepTime> times = kept_times(key);
  if (times.empty()) {
    times = measure_steps(*model.model, kMostMs, clock_ms);
    keep_times(key, times);
  }
  for (const StepTime& time : times) model.control->costs().add(time.n_rows, time.ms);
}

}  // namespace engine

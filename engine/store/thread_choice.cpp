#include "engine/store/thread_choice.h"

#include <algorithm>
#include <map>
#include <vector>

#include "engine/model/model.h"
#include "kernels/thread_sharing.h"

namespace engine {
namespace {

constexpr double kMostMs = 200;
constexpr int kRepeats = 3;
constexpr int kGuessRows = 8;  // of a step with guesses

/// Time of a plain step and one with guesses, for each number of threads.
std::vector<StepTime> measure(Model& model, std::span<const int> counts) {
  std::vector<StepTime> times;
  for (int repeat = 0; repeat <= kRepeats; repeat++) {
    const double begun = clock_ms();
    for (const int n : counts) {
      kernels::set_active_threads(model.device(), n);
      const double ms = forward_ms(model, 1, clock_ms) + forward_ms(model, kGuessRows, clock_ms);
      if (repeat > 0) times.push_back({n, ms});  // the first ones take memory
    }
    if (repeat > 0 && clock_ms() - begun > kMostMs / kRepeats) break;
  }
  return times;
}

}  // namespace

int fewest_fast_threads(std::span<const StepTime> times) {
  ensure(!times.empty(), "no number of threads was measured");
  std::map<int, double> shortest;
  for (const StepTime& time : times) {
    const auto [known, is_new] = shortest.try_emplace(time.n_rows, time.ms);
    if (!is_new) known->second = std::min(known->second, time.ms);
  }
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  const double least = std::ranges::min_element(shortest, by_time)->second;
  const auto is_fast = [&](const auto& one) { return one.second <= 1.03 * least; };
  return std::ranges::find_if(shortest, is_fast)->first;
}

void choose_threads(Model& model, const std::string& weights_hash) {
  const std::vector<int> counts = kernels::thread_counts_to_try(model.device());
  if (counts.size() < 2 || model.max_seq_len() <= kGuessRows) return;
  std::string key = times_key(model, weights_hash);
  if (!key.empty()) key = "by threads, " + key;
  std::vector<StepTime> times = kept_times(key);
  const auto is_known = [&](int n) {
    return std::ranges::find(times, n, &StepTime::n_rows) != times.end();
  };
  if (!std::ranges::all_of(counts, is_known)) {
    times = measure(model, counts);
    keep_times(key, times);
  }
  kernels::set_active_threads(model.device(), fewest_fast_threads(times));
}

}  // namespace engine

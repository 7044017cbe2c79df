#include "engine/decode/window_tuner.h"

#include <algorithm>
#include <limits>

#include "engine/types.h"

namespace engine {
namespace {

constexpr int kTries = 3;
constexpr int kStepsPerRound = 64;

}  // namespace

WindowTuner::WindowTuner(int widest, double factor) : factor_(factor) {
  ensure(widest >= 0 && factor >= 1, "a tuner's factor is at least 1");
  for (int size = 0; size < widest; size = size == 0 ? 1 : 2 * size) sizes_.push_back(size);
  sizes_.push_back(widest);
  forget();
}

void WindowTuner::forget() {
  cost_.assign(sizes_.size(), std::numeric_limits<double>::infinity());
  at_ = 0;
  n_here_ = 0;
  settled_ = sizes_.size() == 1;
}

void WindowTuner::measured(double cost) {
  cost_[at_] = std::min(cost_[at_], cost);
  n_here_++;
  if (settled_) {
    if (n_here_ >= kStepsPerRound) forget();
    return;
  }
  if (n_here_ < kTries) return;
  n_here_ = 0;
  if (at_ > 0 && !affordable(at_)) {
    at_--;
    settled_ = true;
  } else if (at_ + 1 == sizes_.size()) {
    settled_ = true;
  } else {
    at_++;
  }
}

}  // namespace engine

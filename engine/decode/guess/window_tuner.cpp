#include "engine/decode/guess/window_tuner.h"

#include <algorithm>
#include <limits>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr int kTries = 3;
constexpr int kStepsPerRound = 64;
constexpr double kUnmeasured = std::numeric_limits<double>::infinity();

}  // namespace

WindowTuner::WindowTuner(int widest, double factor) : widest_(widest), factor_(factor) {
  ensure(widest >= 0 && factor >= 1, "a tuner's factor is at least 1");
  begin_round();
}

void WindowTuner::begin_round() {
  window_ = 0;
  n_here_ = 0;
  fastest_ = kUnmeasured;
  affordable_ = 0;
  too_dear_ = widest_ + 1;
  settled_ = widest_ == 0;
}

void WindowTuner::measured(double cost) {
  fastest_ = std::min(fastest_, cost);
  n_here_++;
  if (settled_) {
    if (n_here_ >= kStepsPerRound) begin_round();
    return;
  }
  if (n_here_ >= kTries) settle_size();
}

/// Decides by the fastest step whether the size window_ is affordable, and chooses the next size.
void WindowTuner::settle_size() {
  if (window_ == 0) without_ = fastest_;
  (fastest_ <= factor_ * without_ ? affordable_ : too_dear_) = window_;
  settled_ = too_dear_ - affordable_ == 1;
  window_ = settled_ ? affordable_ : next_size();
  n_here_ = 0;
  fastest_ = kUnmeasured;
}

int WindowTuner::next_size() const {
  if (too_dear_ > widest_) return std::min(widest_, std::max(1, 2 * affordable_));
  return affordable_ + (too_dear_ - affordable_) / 2;
}

}  // namespace engine

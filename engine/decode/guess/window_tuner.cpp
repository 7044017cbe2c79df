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
  ensure(widest >= 0 && factor >= 1, "the tuner's factor must be at least 1");
  begin_round();
}

void WindowTuner::begin_round() {
  window_ = 0;
  n_here_ = 0;
  fastest_ = kUnmeasured;
  affordable_ = 0;
  unaffordable_ = widest_ + 1;
  found_ = widest_ == 0;
}

void WindowTuner::measured(double cost) {
  fastest_ = std::min(fastest_, cost);
  n_here_++;
  if (found_) {
    if (n_here_ >= kStepsPerRound) begin_round();
    return;
  }
  if (n_here_ >= kTries) classify_size();
}

/// Decides by the fastest step whether the size window_ is affordable, and chooses the next size.
void WindowTuner::classify_size() {
  if (window_ == 0) without_ = fastest_;
  (fastest_ <= factor_ * without_ ? affordable_ : unaffordable_) = window_;
  found_ = unaffordable_ - affordable_ == 1;
  window_ = found_ ? affordable_ : next_size();
  n_here_ = 0;
  fastest_ = kUnmeasured;
}

int WindowTuner::next_size() const {
  if (unaffordable_ > widest_) return std::min(widest_, std::max(1, 2 * affordable_));
  return affordable_ + (unaffordable_ - affordable_) / 2;
}

}  // namespace engine

// The probability that a guess is right, from the guesses that were verified, with forgetting.
#pragma once

#include <algorithm>
#include <cmath>

namespace engine {

/// An acceptance rate with a prior.
class Rate {
 public:
  /// @param prior   the rate before any observation
  /// @param weight  the number of observations that the prior weighs as much as
  explicit Rate(double prior = 0.3, double weight = 3)
      : prior_(prior), weight_(weight), n_(weight), n_right_(weight * prior) {}

  /// Adds an observation. The weight of earlier ones and of the prior halves about every 35
  /// observations.
  void add(bool is_right) {
    n_ = kForget * n_ + 1;
    n_right_ = kForget * n_right_ + is_right;
  }
  /// Called once a step: moves the rate towards its prior, half of the way in about 350 steps. So
  /// guesses that were not tried for long are tried again.
  void fade() {
    n_ += (1 - kFade) * (weight_ - n_);
    n_right_ += (1 - kFade) * (weight_ * prior_ - n_right_);
  }
  double mean() const { return n_right_ / n_; }
  /// An optimistic estimate: one and a half standard deviations above the mean.
  double hoped() const {
    const double cautious = (n_right_ + 1) / (n_ + 2);
    return std::min(1.0, mean() + 1.5 * std::sqrt(cautious * (1 - cautious) / (n_ + 2)));
  }

 private:
  static constexpr double kForget = 0.98, kFade = 0.998;
  double prior_, weight_;
  double n_, n_right_;
};

}  // namespace engine

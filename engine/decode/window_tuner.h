// FastCoT's adaptive window (ours, not the paper's): the widest of a few sizes whose measured step
// stays under a given multiple of a step without a window. Which size is used changes no
// exact token.
#pragma once

#include <cstddef>
#include <vector>

namespace engine {

class WindowTuner {
 public:
  /// Tries 0, 1, 2, 4, ... and `widest`.
  /// @param factor  of the cost of a step without a window; at least 1
  WindowTuner(int widest, double factor);

  /// The window of the next step.
  int window() const { return sizes_[at_]; }
  /// What the step with window() took, in any unit. A size is judged by its fastest of three; all
  /// are measured anew every 64 steps, for steps grow dearer with the text.
  void measured(double cost);

 private:
  bool affordable(std::size_t size) const { return cost_[size] <= factor_ * cost_[0]; }
  void forget();

  double factor_;
  std::vector<int> sizes_;
  std::vector<double> cost_;  // [sizes_] fastest since the last round began
  std::size_t at_ = 0;
  int n_here_ = 0;  // steps of this round at sizes_[at_]
  bool settled_ = false;
};

}  // namespace engine

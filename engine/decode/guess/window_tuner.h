// Adapts the size of FastCoT's window, or of Lookahead's columns and guesses, to measured time. It
// searches for the largest size whose step costs at most a given multiple of a step with size 0,
// and assumes that a larger size never costs less. Our addition. The size changes no exact token.
#pragma once

namespace engine {

/// Searches for the largest affordable window size.
class WindowTuner {
 public:
  /// Tries 0, 1, 2, 4, ... up to `widest` until a size costs too much, then bisects between it and
  /// the last affordable size.
  /// @param factor  the largest affordable cost of a step, as a multiple of the cost of a step
  ///                without a window; at least 1
  WindowTuner(int widest, double factor);

  /// The window size for the next step.
  int window() const { return window_; }
  /// Reports the cost of a step with window(), in any unit. The fastest of three steps counts as
  /// the cost of a size. After 64 steps the search starts again from the size it found, because
  /// steps become slower as the sequence grows.
  void measured(double cost);

 private:
  void begin_round();
  void classify_size();
  int next_size() const;

  int widest_;
  double factor_;
  int window_ = 0;
  int n_here_ = 0;        // steps of this round with size window_
  double fastest_ = 0;    // cost of the fastest of these steps
  double without_ = 0;    // cost of the fastest step with window 0 in this round
  int affordable_ = 0;    // the largest size known to be affordable
  int unaffordable_ = 0;  // the smallest size known to cost too much; widest_ + 1: none
  bool found_ = false;
};

}  // namespace engine

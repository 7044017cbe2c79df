// Adaptive sizes of FastCoT's window and of Lookahead's columns and guesses (ours, not the papers'):
// the largest whose step stays under a given multiple of a step without any, if a larger one never
// costs less. Which size is used changes no exact token.
#pragma once

namespace engine {

class WindowTuner {
 public:
  /// Tries 0, 1, 2, 4, ... and `widest` until one costs too much, then halves the gap between it
  /// and the last that did not, down to the next size.
  /// @param factor  of the cost of a step without a window; at least 1
  WindowTuner(int widest, double factor);

  /// The window of the next step.
  int window() const { return window_; }
  /// What the step with window() took, in any unit. A size is judged by its fastest of three. The
  /// search begins anew after 64 steps with the size it found, for steps grow dearer with the text.
  void measured(double cost);

 private:
  void begin_round();
  void judge();
  int next_size() const;

  int widest_;
  double factor_;
  int window_ = 0;
  int n_here_ = 0;      // steps of this round with window_
  double fastest_ = 0;  // of these
  double without_ = 0;  // the fastest of window 0, this round
  int affordable_ = 0;  // the widest known to be
  int too_dear_ = 0;    // the narrowest known to be; widest_ + 1: none is
  bool settled_ = false;
};

}  // namespace engine

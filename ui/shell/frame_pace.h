// The minimum time between frames. Drawing takes processor time from the decoder. While steps are measured, frames are therefore rare if a software
// renderer draws them, or if the steps belong to a set of races, whose figures are compared; and fewer if nobody has used the window for a
// second, or if it has no focus.
#pragma once

namespace ui {

/// Returns true if OpenGL's name of the renderer denotes a software renderer.
bool draws_in_software(const char* renderer);

/// Chooses the time between frames.
class FramePace {
 public:
  /// Maximum share of the time that drawing takes while quiet.
  static constexpr double kQuietShare = 0.05;
  /// Minimum and maximum time between frames while quiet, s.
  static constexpr double kQuietSeconds = 0.5, kLongestSeconds = 1;
  /// Minimum time between frames while a set of races is measured, s. On two cores, 10 frames a second made decoding 3 % slower.
  static constexpr double kSetSeconds = 0.5;
  /// Minimum time between frames while steps are measured and the window has no focus, s.
  static constexpr double kUnfocusedSeconds = 1.0 / 20;
  /// Minimum time between frames while steps are measured and the last input is older than kIdleAfter, s.
  static constexpr double kIdleSeconds = 1.0 / 30, kIdleAfter = 1;
  /// Maximum delay of the response to input with a software renderer, s.
  static constexpr double kAnswerSeconds = 0.1;

  /// @param software  the result of draws_in_software()
  explicit FramePace(bool software) : software_(software) {}

  /// Sets the most frames a second, more than 0.
  void limit(int frames_per_second) { frame_seconds_ = 1.0 / frames_per_second; }
  /// Sets whether the engine computes steps that are measured.
  /// @param of_set  true: they belong to a set of races
  void measuring(bool on, bool of_set = false) {
    measuring_ = on;
    of_set_ = of_set;
  }
  /// Sets whether the window has the focus.
  void focus(bool on) { focus_ = on; }
  /// Sets the time since the last input, s.
  void since_input(double seconds) { since_input_ = seconds; }
  /// Reports the time to draw a frame.
  void drew(double seconds) { cost_ = seconds; }

  /// Returns true if frames are drawn rarely.
  bool quiet() const { return measuring_ && (software_ || of_set_); }
  /// Returns true if fewer frames are drawn because the window has no focus.
  bool unfocused() const { return measuring_ && !focus_; }
  /// Returns the minimum time between the starts of two frames, s.
  /// @param has_input  true: input waits for a response
  double gap(bool has_input) const;

 private:
  bool software_;
  bool measuring_ = false, of_set_ = false, focus_ = true;
  double frame_seconds_ = 1.0 / 60;
  double since_input_ = 0;
  double cost_ = 0;
};

}  // namespace ui

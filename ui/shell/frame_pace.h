// The minimum time between frames. A software renderer takes processor time from the decoder, so while steps are measured it draws rarely;
// otherwise drawing would distort the measured speed.
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
  /// Maximum delay of the response to input, s.
  static constexpr double kAnswerSeconds = 0.1;

  /// @param software  the result of draws_in_software()
  explicit FramePace(bool software) : software_(software) {}

  /// Sets the most frames a second, more than 0.
  void limit(int frames_per_second) { frame_seconds_ = 1.0 / frames_per_second; }
  /// Sets whether the engine computes steps that are measured.
  void measuring(bool on) { measuring_ = on; }
  /// Reports the time to draw a frame.
  void drew(double seconds) { cost_ = seconds; }

  /// Returns true if frames are drawn rarely.
  bool quiet() const { return software_ && measuring_; }
  /// Returns the minimum time between the starts of two frames, s.
  /// @param has_input  true: input waits for a response
  double gap(bool has_input) const;

 private:
  bool software_;
  bool measuring_ = false;
  double frame_seconds_ = 1.0 / 60;
  double cost_ = 0;
};

}  // namespace ui

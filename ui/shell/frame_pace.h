// How soon the next frame may be drawn. Where no graphics card draws, a frame takes the processor
// that decodes: while steps are being measured such frames come seldom, so that a speed shown is
// the engine's and not the window's.
#pragma once

namespace ui {

/// Whether OpenGL's name of what draws is that of a program and not of a card.
bool draws_in_software(const char* renderer);

class FramePace {
 public:
  static constexpr double kFrameSeconds = 1.0 / 60;
  /// Quiet: of the time at most this share is drawn in ...
  static constexpr double kQuietShare = 0.05;
  /// ... at most 2 frames a second, but at least one.
  static constexpr double kQuietSeconds = 0.5, kLongestSeconds = 1;
  /// A person who does something is answered within this.
  static constexpr double kAnswerSeconds = 0.1;

  /// @param software  draws_in_software()
  explicit FramePace(bool software) : software_(software) {}

  /// @param on  the engine is taking steps that are measured
  void measuring(bool on) { measuring_ = on; }
  /// A frame was drawn in `seconds`.
  void drew(double seconds) { cost_ = seconds; }

  bool quiet() const { return software_ && measuring_; }
  /// Seconds between the beginnings of two frames at least.
  /// @param asked  input waits for an answer
  double gap(bool asked) const;

 private:
  bool software_;
  bool measuring_ = false;
  double cost_ = 0;
};

}  // namespace ui

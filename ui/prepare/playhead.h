// The playhead: the time up to which the view shows a run. The time is a lane's own compute in ns,
// so all lanes of a race are shown after the same amount of compute. The engine does not wait for
// the playhead.
#pragma once

#include <algorithm>
#include <utility>

namespace ui {

/// A setting: how smoothly the view moves while it plays or a key is held. Everything else changes at once.
enum class Motion {
  System,   ///< as the desktop's setting says: full or none
  Full,     ///< a move in every frame
  Reduced,  ///< ten moves a second, and tabs do not glide
  None,     ///< two jumps a second, and tabs do not glide
};

/// Returns the time between two moves, s; 0: one in every frame.
constexpr double seconds_between_moves(Motion motion) {
  return motion == Motion::None ? 0.5 : motion == Motion::Reduced ? 0.1 : 0;
}
/// Returns the motion that a setting means on this desktop.
constexpr Motion shown_motion(Motion setting, bool desktop_animates) {
  if (setting != Motion::System) return setting;
  return desktop_animates ? Motion::Full : Motion::None;
}

/// Collects the time of frames and releases it in jumps.
class Jumps {
 public:
  /// Adds the time of a frame. @return the time to move by in this frame, s; 0 until `between` seconds are collected
  double take(double seconds, double between) {
    collected_ += seconds;
    return collected_ < between ? 0 : std::exchange(collected_, 0.0);
  }
  /// Makes the next take() a jump of about `between` seconds.
  void make_due(double between) { collected_ = between; }

 private:
  double collected_ = 0;  // s
};

/// The playhead of all panels.
struct Playhead {
  /// Follow: the playhead stays at the newest time.
  enum class Mode { Follow, Paused, Playing };
  Mode mode = Mode::Follow;
  double at = 0;     // own compute, ns
  double speed = 1;  // speed of playing: seconds of compute per second

  /// Advances by `seconds` of the view's clock. `end` is the newest time.
  void advance(double seconds, double end) {
    if (mode == Mode::Follow) at = end;
    if (mode != Mode::Playing) return;
    at += seconds * 1e9 * speed;
    if (at >= end) {
      at = end;
      mode = Mode::Paused;
    }
  }
  /// Moves to a time and pauses.
  void go_to(double ns, double end) {
    at = std::clamp(ns, 0.0, end);
    mode = Mode::Paused;
  }
  /// Starts or pauses playing; at the end it starts over.
  void play_or_pause(double end) {
    if (mode == Mode::Playing) {
      mode = Mode::Paused;
      return;
    }
    if (mode == Mode::Follow) {
      mode = Mode::Paused;
      return;
    }
    if (at >= end) at = 0;
    mode = Mode::Playing;
  }
  /// Returns true if the playhead stays at the newest time.
  bool follows() const { return mode == Mode::Follow; }
};

}  // namespace ui

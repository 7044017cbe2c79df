// Where the view stands in time. Its unit is a lane's own compute, in nanoseconds, so lanes of a
// race stand at equal compute whatever they cost each other in wall time. The engine never waits
// for it.
#pragma once

#include <algorithm>

namespace ui {

struct Playhead {
  enum class Mode { Follow, Paused, Playing };
  Mode mode = Mode::Follow;
  double at = 0;     // own compute, ns
  double speed = 1;  // of playing: seconds of compute a second

  /// Moves with the view's clock. `end` is the newest time there is.
  void advance(double seconds, double end) {
    if (mode == Mode::Follow) at = end;
    if (mode != Mode::Playing) return;
    at += seconds * 1e9 * speed;
    if (at >= end) {
      at = end;
      mode = Mode::Paused;
    }
  }
  void go_to(double ns, double end) {
    at = std::clamp(ns, 0.0, end);
    mode = Mode::Paused;
  }
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
  bool follows() const { return mode == Mode::Follow; }
};

}  // namespace ui

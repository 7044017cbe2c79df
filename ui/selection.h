// The one selection all panels share: what is hovered in one lights up in all, a click locks it.
#pragma once

#include "engine/event/event.h"

namespace ui {

/// Something a panel can point at. Parts that are unknown are -1 (run: 0).
struct Place {
  engine::RunId run = 0;
  engine::StepId step = -1;
  int position = -1;  // from the sequence's start
  int row = -1;       // of the step's tree

  bool valid() const { return run != 0 && (step >= 0 || position >= 0); }
  bool operator==(const Place&) const = default;
};

struct Selection {
  engine::RunId run = 0;   // the run the Live panels show
  std::uint32_t race = 0;  // the race Compare shows; 0: none
  Place locked;            // clicked
  Place hovered;           // under the mouse in the previous frame
  Place next_hovered;      // gathered during this frame

  void begin_frame() {
    hovered = next_hovered;
    next_hovered = {};
  }
  void hover(const Place& place) { next_hovered = place; }
  /// Locks the place, or frees it when it was locked already.
  void click(const Place& place) { locked = locked == place ? Place{} : place; }
  /// What the panels describe: the hovered place, else the locked one.
  const Place& shown() const { return hovered.valid() ? hovered : locked; }
  bool lights_step(engine::RunId of, engine::StepId step) const {
    const Place& p = shown();
    return p.run == of && p.step == step && step >= 0;
  }
  bool lights_position(engine::RunId of, int position) const {
    const Place& p = shown();
    return p.run == of && p.position == position && position >= 0;
  }
};

}  // namespace ui

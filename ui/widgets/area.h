// The part of the window in which frames are drawn.
#pragma once

#include <imgui.h>

namespace ui {

/// A rectangle on the screen, px.
struct Area {
  ImVec2 min, max;
  float wide() const { return max.x - min.x; }
  float high() const { return max.y - min.y; }
  ImVec2 size() const { return {wide(), high()}; }
};

/// Returns the whole window.
Area whole_window();
/// Returns the part of an area that a 16:9 projector shows, without a margin that screens may cut off.
Area safe_area(const Area& area);

/// Returns the area in which bars, panels and sheets are drawn: the whole window, or its safe area in presentation mode.
Area frame_area();
/// Sets what frame_area() returns.
/// @param area  of width 0: frame_area() returns the whole window
void set_frame_area(const Area& area);

}  // namespace ui

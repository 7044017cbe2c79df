// The time axis that panels share: the visible range, the overview strip, the ruler and the playhead, and their reactions to the mouse and
// the keyboard. Needs a Dear ImGui frame.
#pragma once

#include <functional>
#include <span>
#include <string>

#include <imgui.h>

#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/time_range.h"

namespace ui {
struct Context;
struct MarkNote;
}  // namespace ui

namespace ui::time_axis {

constexpr float kLabelWidth = 86;  // width of the labels at the left
constexpr float kOverviewHeight = 24, kRulerHeight = 24;

/// The visible range and the pixels that it is drawn on.
struct Picture {
  ClockView view;
  double begin = 0, end = 1;  // start and end of all data, on the clock
  float x0 = 0, x1 = 0;

  /// Returns the pixel of a time.
  float x_of(double t) const {
    return x0 + static_cast<float>((t - view.t0) / (view.t1 - view.t0)) * (x1 - x0);
  }
  /// Returns the time of a pixel.
  double t_of(float x) const { return view.t0 + (x - x0) / (x1 - x0) * (view.t1 - view.t0); }
};

/// Sets the visible range; if `range` is not zoomed, to all data and 5 % after it.
void set_range(Picture& picture, const TimeRange& range);

/// Changes the length of the visible range by `factor`; the time `at` keeps its pixel.
void zoom(TimeRange& range, const Picture& picture, double at, double factor);
/// Moves the visible range by a time. The playhead stops following.
void pan(Context& context, TimeRange& range, const Picture& picture, double by);
/// Makes [a, b] the visible range. The playhead stops following.
void show_range(Context& context, TimeRange& range, double a, double b);
/// Moves a zoomed range so that the time `newest` stays visible, if the playhead follows.
void keep_following(const Context& context, TimeRange& range, Picture& picture, double newest);

/// Handles wheel, drags and clicks over the lanes.
void handle_mouse(
    Context& context, TimeRange& range, const Picture& picture, float top, float bottom);
/// Zooms and pans while W, S, A or D is held.
void walk_keys(Context& context, TimeRange& range, const Picture& picture);
/// Returns true if the button was released without a drag.
bool clicked_with(ImGuiMouseButton button);

/// Draws the overview strip: one bar per part of all data. A drag on it moves the visible range.
void draw_overview(Context& context,
                   TimeRange& range,
                   const Picture& picture,
                   ImVec2 at,
                   std::span<const float> bars,
                   const char* help);
/// Returns the number of bars that fit the strip.
int overview_parts(const Picture& picture);
/// Draws the ruler.
/// @param scrub  receives the time under the mouse while the ruler is dragged
void draw_ruler(const Picture& picture,
                ImVec2 at,
                float bottom,
                const std::function<void(double)>& scrub);
/// Draws the playhead at a time.
void draw_playhead(const Picture& picture, double at, float top, float bottom);
/// Returns the height below the lanes that the words of a measured range need, px; 0 without a range.
float room_for_range_words(const TimeRange& range);
/// Draws the measured range, and `words` of it at the bottom, below the lanes.
void draw_range(const TimeRange& range,
                const Picture& picture,
                float top,
                float bottom,
                const std::function<std::string(double from, double to)>& words);

/// Draws the controls of the playhead in a panel's head: start, play, end, speed, follow. Their places do not depend on the playhead.
void playhead_controls(Context& context);

/// Marks `share`, the share of a slice's rows without a committed token: hatches the end of the slice, half as wide as the share. A narrow slice gets
/// a bar at its foot as long as the share.
void waste_mark(ImDrawList* list, ImVec2 min, ImVec2 max, float share);
/// Draws the sample of waste_mark() in legends.
void draw_waste_sample(ImDrawList* list, ImVec2 at, const MarkNote& note);

}  // namespace ui::time_axis

// What the panels with a time axis share: the visible range on its pixels, the strip above it, the
// ruler and the playhead, and what wheel, drags and keys do to the range. Needs a Dear ImGui frame.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ui/shell/context.h"

namespace ui::time_axis {

constexpr float kLabelWidth = 86;  // of the lanes' names, at the left
constexpr float kOverviewHeight = 20, kRulerHeight = 18;

/// The visible range on its pixels.
struct Picture {
  ClockView view;
  double begin = 0, end = 1;  // of all there is, on the clock
  float x0 = 0, x1 = 0;

  float x_of(double t) const {
    return x0 + static_cast<float>((t - view.t0) / (view.t1 - view.t0)) * (x1 - x0);
  }
  double t_of(float x) const { return view.t0 + (x - x0) / (x1 - x0) * (view.t1 - view.t0); }
};

/// Takes over the range, or all there is and a little room behind it.
void set_range(Picture& picture, const TimeRange& range);

void zoom(TimeRange& range, const Picture& picture, double at, double factor);
/// These two end following.
void pan(Context& context, TimeRange& range, const Picture& picture, double by);
void show_range(Context& context, TimeRange& range, double a, double b);
/// The newest time stays in view while following a zoomed range.
void keep_following(const Context& context, TimeRange& range, Picture& picture, double newest);

/// Wheel, drags and clicks over the lanes.
void handle_mouse(
    Context& context, TimeRange& range, const Picture& picture, float top, float bottom);
void walk_keys(Context& context, TimeRange& range, const Picture& picture);
/// Released without having been dragged.
bool clicked_with(ImGuiMouseButton button);

/// How much came to pass over all there is, part by part; a drag moves the visible range.
void draw_overview(Context& context,
                   TimeRange& range,
                   const Picture& picture,
                   ImVec2 at,
                   std::span<const float> bars,
                   const char* help);
/// Parts that the strip has room for.
int overview_parts(const Picture& picture);
/// @param scrub  told where the ruler is being dragged to, on the clock
void draw_ruler(const Picture& picture,
                ImVec2 at,
                float bottom,
                const std::function<void(double)>& scrub);
void draw_playhead(const Picture& picture, double at, float top, float bottom);
/// The measured range, with what there is in it.
void draw_range(const TimeRange& range,
                const Picture& picture,
                float top,
                float bottom,
                const std::function<std::string(double from, double to)>& words);

/// Start, play, end, speed and following, for a panel's head.
void playhead_controls(Context& context);

}  // namespace ui::time_axis

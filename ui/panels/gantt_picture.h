// What the parts of the time line share: the visible range, the rows below the ruler. Not for other
// panels.
#pragma once

#include <string>
#include <vector>

#include "ui/context.h"
#include "ui/draw.h"

namespace ui::gantt {

/// The visible range on its pixels.
struct Picture {
  ClockView view;
  double begin = 0, end = 1;  // of all there is, on the clock
  float x0 = 0, x1 = 0;
  std::vector<StepColumn> columns;  // of the run whose counters are shown

  float x_of(double t) const {
    return x0 + static_cast<float>((t - view.t0) / (view.t1 - view.t0)) * (x1 - x0);
  }
  double t_of(float x) const { return view.t0 + (x - x0) / (x1 - x0) * (view.t1 - view.t0); }
};

/// A lane or a counter of one run.
struct Row {
  LaneKey key;
  const engine::RunRecord* run = nullptr;
  std::string label;
  bool collapsed = false;
  float y = 0, height = 0;

  float middle() const { return y + height / 2; }
};

constexpr float kLabelWidth = 86;

/// The rows of the runs shown, in the person's order, laid out from `top` down. They move a little
/// closer together where `room` is short.
/// @param natural  set to all there are, hidden ones too, as they stand before anyone moves them
std::vector<Row> rows_of(Context& context, float top, float room, std::vector<LaneKey>& natural);

/// Labels: a click collapses, a drag moves, a right click offers more.
void draw_labels(Context& context,
                 const std::vector<Row>& rows,
                 const std::vector<LaneKey>& natural,
                 float left);
/// A word above the labels that brings hidden lanes back, where some are hidden.
void draw_hidden_chip(Context& context, const std::vector<LaneKey>& natural, ImVec2 at);
void draw_row(Context& context, const Row& row, const Picture& picture);
/// The way of what is selected, across the rows.
void draw_arrows(Context& context, const std::vector<Row>& rows, const Picture& picture);

void zoom(Context& context, const Picture& picture, double at, double factor);
void pan(Context& context, const Picture& picture, double by);
/// Makes [a, b] the visible range; the view then follows no longer.
void show_range(Context& context, double a, double b);
/// Wheel, drags and clicks over the lanes.
void handle_mouse(Context& context, const Picture& picture, float top, float bottom);
void walk_keys(Context& context, const Picture& picture);
/// The run whose time the playhead takes: the longest.
const engine::RunRecord* lead(Context& context);

}  // namespace ui::gantt

// What the parts of the time line share: the rows below the ruler. Not for other
// panels.
#pragma once

#include <string>
#include <vector>

#include "ui/shell/context.h"
#include "ui/widgets/draw.h"
#include "ui/panels/time/time_axis.h"

namespace ui::gantt {

struct Picture : time_axis::Picture {
  std::vector<StepColumn> columns;  // of the run whose counters are shown
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

/// The run whose time the playhead takes: the longest.
const engine::RunRecord* lead(Context& context);

}  // namespace ui::gantt

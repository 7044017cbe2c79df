// The rows of the panel Timeline, shared by its two source files. Other panels do not include this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "ui/panels/time/time_axis.h"
#include "ui/prepare/time/lane_order.h"

namespace engine {
class RunLod;
}

namespace ui::gantt {

/// The time axis and the columns of the counters.
struct Picture : time_axis::Picture {
  float words_end = 0;              // right end of the room for the words at the ends of runs, px
  std::vector<StepColumn> columns;  // columns of the run whose counters are shown
};

/// A lane or a counter of one run.
struct Row {
  LaneKey key;
  const engine::RunRecord* run = nullptr;
  std::string label;
  bool collapsed = false;
  float y = 0, height = 0;

  /// Returns the vertical centre, px.
  float middle() const { return y + height / 2; }
};

/// Returns the rows of the runs shown in the user's order, laid out from `top` down; slightly smaller if `room` (px) is short.
/// @param natural  receives all existing lanes in their default order, hidden ones included
std::vector<Row> rows_of(Context& context, float top, float room, std::vector<LaneKey>& natural);

/// Draws the labels: a click collapses a row, a drag moves it, a right click opens a menu.
void draw_labels(Context& context,
                 const std::vector<Row>& rows,
                 const std::vector<LaneKey>& natural,
                 float left);
/// Draws a button above the labels that shows hidden lanes again, if there are any.
void draw_hidden_chip(Context& context, const std::vector<LaneKey>& natural, ImVec2 at);
/// Returns the width of the room that words at the ends of runs have right of the axis, px.
float room_for_end_words();
/// The same for the words at the ends of runs that their recording cuts; 0 if there is none.
float room_for_words_of_cuts(const Context& context);
/// Returns where the word at the end of a run begins, px: right of the end, where the lane has no slices; nullopt if the end is not visible
/// or the word has no room.
/// @param x     the end of the run, px
/// @param wide  width of the word, px
std::optional<float> end_word_at(const Picture& picture, float x, float wide);
/// Draws the slices or the columns of a row.
void draw_row(Context& context, const Row& row, const Picture& picture);
/// Draws the arrows of the selected token or step across the rows.
void draw_arrows(Context& context, const std::vector<Row>& rows, const Picture& picture);

/// Returns the levels of detail of a run on a clock, up to date for the lanes given as engine::lane_bit.
const engine::RunLod& lod_of(Context& context,
                             const engine::RunRecord& run,
                             ClockKind clock,
                             unsigned lanes);
/// Returns the longest of the runs shown; the playhead shows its time.
const engine::RunRecord* lead(Context& context);

}  // namespace ui::gantt

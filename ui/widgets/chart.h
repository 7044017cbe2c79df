// Charts by ImPlot. The legend names each curve with its marker and its value under the mouse, at the marked x, or the newest; a click on an entry
// hides the curve. The wheel zooms, dragging pans, the right button selects a range, a double click shows everything again.
#pragma once

#include <limits>
#include <optional>
#include <span>

#include <imgui.h>

#include "ui/widgets/theme.h"

namespace ui {

struct Curve;

/// The x axis that several charts share: they are zoomed, panned and hovered together.
struct ChartAxis {
  double min = 0, max = 1;  // the visible range
  bool shows_all = true;    // the visible range follows the curves
  // The range of all curves drawn so far; empty at first.
  double data_min = std::numeric_limits<double>::max(), data_max = -data_min;
  double hovered = std::numeric_limits<double>::quiet_NaN();  // an x under the mouse
  ImGuiID hovered_in = 0;                                     // the chart under the mouse
};

/// The options of a chart.
struct ChartLook {
  const char* x_name = "";            // name of the x axis: "steps"
  bool whole = false;                 // x has whole numbers: no labels between them
  bool log = false;                   // the y axis is logarithmic, if any value is > 0
  bool dots = false;                  // mark every value
  std::optional<double> marked = {};  // an x that is selected elsewhere
  std::optional<double> level = {};   // a y that a horizontal line shows
  bool marks_below = false;           // mark the values below the level
  // > 0: bars this wide along x in place of lines, with whole labels along y and without a legend; the caller draws the tooltip of axis.hovered.
  double bar_width = 0;
  std::optional<Rgb> ink = {};  // the colour of all curves
};

/// Draws a chart at the cursor, `size` pixels large.
/// @return the x of the value nearest to a click
std::optional<double> draw_chart(const char* id,
                                 std::span<const Curve> curves,
                                 ChartAxis& axis,
                                 const ChartLook& look,
                                 ImVec2 size);

}  // namespace ui

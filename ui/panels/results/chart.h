// A line chart: each curve has its own colour and dash pattern; the legend above gives its name and its value under the mouse, or the newest.
#pragma once

#include <optional>
#include <span>

#include <imgui.h>

namespace ui {

struct Curve;

/// The options of a chart.
struct ChartLook {
  const char* x_name = "";            // name of the x axis: "steps"
  bool log = false;                   // the y axis is logarithmic
  bool dots = false;                  // draw every value as a dot too
  std::optional<double> marked = {};  // an x that is selected in another panel
};

/// Draws a chart at the cursor, `size` pixels large.
/// @return the x of the value nearest to a click
std::optional<double> draw_chart(const char* id,
                                 std::span<const Curve> curves,
                                 const ChartLook& look,
                                 ImVec2 size);

}  // namespace ui

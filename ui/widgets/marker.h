// Markers of points in plots.
#pragma once

#include <implot.h>

namespace ui {

/// Sets a marker of one colour that is whole at the border of the plot. ImPlot clips markers at `MarkerSize` beyond the border, and an outline would be
/// cut there by half its width, so filled shapes have none.
void set_whole_marker(ImPlotSpec& spec, ImPlotMarker shape, float radius, const ImVec4& ink);

}  // namespace ui

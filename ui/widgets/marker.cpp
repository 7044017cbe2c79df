#include "ui/widgets/marker.h"

namespace ui {

void set_whole_marker(ImPlotSpec& spec, ImPlotMarker shape, float radius, const ImVec4& ink) {
  const bool is_filled = shape < ImPlotMarker_Cross;
  spec.Marker = shape;
  spec.MarkerSize = radius + (is_filled ? spec.LineWeight / 2 : 0);
  spec.MarkerFillColor = ink;
  spec.MarkerLineColor = is_filled ? ImVec4(0, 0, 0, 0) : ink;
  spec.Flags |= ImPlotScatterFlags_NoClip;
}

}  // namespace ui

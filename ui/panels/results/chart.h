// Lines over a common axis: each with a colour and a dash pattern of its own, its name and newest
// value in the legend above, and what it is under the mouse.
#pragma once

#include <optional>
#include <span>

#include <imgui.h>

#include "ui/prepare/time/curves.h"

namespace ui {

struct ChartLook {
  const char* x_name = "";            // "steps"
  bool log = false;                   // y by its logarithm
  bool dots = false;                  // every value as a dot too: where there are few
  std::optional<double> marked = {};  // an x that is selected elsewhere
};

/// At the cursor, in so much room.
/// @return the x of the value nearest to where it was clicked
std::optional<double> draw_chart(const char* id,
                                 std::span<const Curve> curves,
                                 const ChartLook& look,
                                 ImVec2 size);

}  // namespace ui

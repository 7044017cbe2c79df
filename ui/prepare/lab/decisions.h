// The sizes that a decoder chose step by step (n=auto and the like), with the expected and the measured tokens and times.
#pragma once

#include <vector>

#include "ui/prepare/time/curves.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// Curves over the steps whose size was chosen.
struct Decisions {
  std::vector<Curve> tokens;  // expected, committed
  std::vector<Curve> ms;      // expected, measured, expected of a plain step
  std::vector<Curve> size;    // chosen size
};
/// Returns the curves; without a value if no size was chosen.
Decisions decisions_of(const engine::RunRecord& run);

}  // namespace ui

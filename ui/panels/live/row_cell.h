// Draws one row of a step's token tree as a cell, for the panels of a step.
#pragma once

#include "ui/widgets/theme.h"

namespace engine {
struct RunRecord;
struct StepRecord;
}  // namespace engine

namespace ui {

struct Context;

/// Draws the cell at the cursor, `width` pixels wide, and handles hovers and clicks.
void row_cell(Context& context,
              const engine::RunRecord& run,
              const engine::StepRecord& step,
              int row,
              Mean mean,
              float width);

}  // namespace ui

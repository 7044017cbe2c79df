// Draws one row of a step's token tree as a cell, for the panels of a step.
#pragma once

#include "ui/widgets/theme.h"

namespace engine {
struct RunRecord;
struct StepRecord;
}  // namespace engine

namespace ui {

struct Context;

/// Returns true if a row of the step is highlighted: the row itself, or the token that the step committed from it.
bool lights(const Context& context,
            const engine::RunRecord& run,
            const engine::StepRecord& step,
            int row);

/// Draws the cell at the cursor, `width` pixels wide, and handles hovers and clicks.
void row_cell(Context& context,
              const engine::RunRecord& run,
              const engine::StepRecord& step,
              int row,
              Mean mean,
              float width);

}  // namespace ui

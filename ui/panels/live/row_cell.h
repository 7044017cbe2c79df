// One row of a step's tree as a token cell: Trajectory and Pool draw the same rows.
#pragma once

#include "ui/shell/context.h"
#include "ui/widgets/theme.h"

namespace ui {

/// At the cursor, `width` pixels wide; takes hovers and clicks.
void row_cell(Context& context,
              const engine::RunRecord& run,
              const engine::StepRecord& step,
              int row,
              Mean mean,
              float width);

}  // namespace ui

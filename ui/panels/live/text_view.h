// The tokens of a run as cells in the current window; shared by the Text panel and the lanes.
#pragma once

#include "ui/shell/context.h"

namespace ui {

/// Draws the lines in view and takes hovers and clicks. Long text scrolls with the window; while
/// following, it keeps to the end.
void draw_token_text(Context& context,
                     const engine::RunRecord& run,
                     bool flowing,
                     bool with_prompt);

}  // namespace ui

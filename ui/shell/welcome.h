// The first page of the window.
#pragma once

namespace ui {

struct Context;

/// Draws the first page: the ways to start, and whether everything needed is available.
void draw_welcome(Context& context);

}  // namespace ui

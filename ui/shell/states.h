// The content of a panel that has nothing to draw: the reason, the progress of loading, and remedies.
#pragma once

#include <string>

namespace ui {

struct Context;
struct Panel;

/// Draws the content in the current window, with the panel's sketch.
/// @param why  the panel's sentence
void draw_empty(Context& context, const Panel& panel, const std::string& why);

}  // namespace ui

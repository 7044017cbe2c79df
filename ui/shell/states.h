// The content of a panel that has nothing to draw: the reason, the progress of loading, and remedies.
#pragma once

#include <string>

namespace ui {

struct Context;
struct Panel;

/// Draws the content in the current window.
/// @param why     the panel's sentence
/// @param sketch  true: also draw a faint outline of the content to come
void draw_empty(Context& context, const Panel& panel, const std::string& why, bool sketch);

}  // namespace ui

// What stands in a panel that has nothing to draw: why, how far it is, and what can be done about
// it.
#pragma once

#include <string>

#include "ui/shell/panel.h"

namespace ui {

/// Draws it in the current window.
/// @param why     the panel's sentence
/// @param sketch  with a faint outline of what will appear
void draw_empty(Context& context, const Panel& panel, const std::string& why, bool sketch);

}  // namespace ui

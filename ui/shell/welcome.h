// The page a session begins with.
#pragma once

#include "ui/shell/context.h"

namespace ui {

/// The first page: three ways in, and whether everything needed is there.
void draw_welcome(Context& context);

}  // namespace ui

// The answer, token by token, through a lens.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kTextPanel;

}  // namespace ui

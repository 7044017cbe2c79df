// A block's iterations as a grid; Lookahead's window where there is no block.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kTrajectoryPanel;

}  // namespace ui

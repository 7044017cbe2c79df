// Four large numbers, how acceptance falls with distance, and where the time went.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kNumbersPanel;

}  // namespace ui

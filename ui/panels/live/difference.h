// The lanes side by side in numbers, and in one sentence how the speed-up was measured.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kDifferencePanel;

}  // namespace ui

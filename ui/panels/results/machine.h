// How busy the device and each of its threads was, and how much memory the program held, as the
// engine sampled it; of a GPU what its driver tells besides: its memory, clocks and power.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kMachinePanel;

}  // namespace ui

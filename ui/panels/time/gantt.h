// The time line: overview, ruler, lanes, playhead. Work is solid, waste is hatched in the slice it
// belongs to, a slice says what it brought.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kGanttPanel;

}  // namespace ui

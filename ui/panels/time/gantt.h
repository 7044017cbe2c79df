// The panel Timeline: overview, ruler, lanes and playhead of the runs shown.
#pragma once

namespace ui {

struct Panel;
extern const Panel kGanttPanel;

}  // namespace ui

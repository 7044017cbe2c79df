// The panel Lanes: one column per lane of a race, with the same figures in the same order.
#pragma once

namespace ui {

struct Panel;
extern const Panel kLanesPanel;

}  // namespace ui

// The panel Difference: the figures of the lanes side by side, and how the speed-up was measured.
#pragma once

namespace ui {

struct Panel;
extern const Panel kDifferencePanel;

}  // namespace ui

// The panel Mask: the attention mask of a step, row by row.
#pragma once

namespace ui {

struct Panel;
extern const Panel kMaskPanel;

}  // namespace ui

// The panel Text: the answer as token cells, coloured by a lens.
#pragma once

namespace ui {

struct Panel;
extern const Panel kTextPanel;

}  // namespace ui

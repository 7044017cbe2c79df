// The panel Tree: the tokens that a step proposed, as a tree.
#pragma once

namespace ui {

struct Panel;
extern const Panel kTreePanel;

}  // namespace ui

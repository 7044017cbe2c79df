// The panel Thoughts: a tree-of-thoughts search, with values, pruning and the chain of the answer.
#pragma once

namespace ui {

struct Panel;
extern const Panel kThoughtsPanel;

}  // namespace ui

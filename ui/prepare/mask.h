// Which rows of a step attend to which: to their ancestors among the rows, themselves, and the whole
// prefix. Nothing else is masked, so the tree says it all.
#pragma once

#include <string>
#include <vector>

#include "engine/tree.h"

namespace ui {

/// Neighbouring rows of one purpose.
struct MaskRegion {
  std::string name;  // "draft, depth 2", "draft head 2"
  int first = 0, last = 0;
};

struct Mask {
  std::vector<std::vector<int>> sees;  // [rows] rows it attends to, rising; itself the last
  std::vector<MaskRegion> regions;     // in the order of the rows
  bool seen(int row, int other) const;
};

/// @param by_heads  what is drafted comes from draft heads (row_origin.h)
Mask mask_of(const engine::TokenTree& tree, bool by_heads = false);

}  // namespace ui

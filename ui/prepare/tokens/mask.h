// Which rows of a step attend to which: to their ancestors among the rows, themselves, and the
// whole prefix. Nothing else is masked, so the tree says it all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/token_tree.h"

namespace ui {

/// Neighbouring rows of one purpose.
struct MaskRegion {
  std::string name;        // "draft, depth 2", "draft head 2", "window, level 0"
  std::string short_name;  // "d2", "h2", "w0"
  int first = 0, last = 0;
};

struct Mask {
  std::vector<std::vector<int>> sees;  // [rows] rows it attends to, rising; itself the last
  std::vector<MaskRegion> regions;     // in the order of the rows
  bool seen(int row, int other) const;
};

/// @param by_heads  what is drafted comes from draft heads (row_origin.h)
Mask mask_of(const engine::TokenTree& tree, bool by_heads = false);

/// What stands above each region's columns, so that none reaches into the next: its name, where
/// that has no room its short name, or nothing.
/// @param cell   width of a column
/// @param right  room from the first column on; the last region's name may take all of it
/// @param width  of a text
std::vector<std::string> region_heads(const Mask& mask,
                                      float cell,
                                      float right,
                                      const std::function<float(const std::string&)>& width);

}  // namespace ui

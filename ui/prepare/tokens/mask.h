// The attention mask of a step: every row attends to the prefix, to its ancestors among the rows, and to itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/token_tree.h"
#include "ui/prepare/tokens/row_origin.h"

namespace ui {

/// Adjacent rows with the same purpose.
struct MaskRegion {
  std::string name;        // the name: "draft, depth 2", "draft head 2", "window, level 0"
  std::string short_name;  // the short name: "d2", "h2", "w0"
  int first = 0, last = 0;
};

/// A mask.
struct Mask {
  std::vector<std::vector<int>>
      sees;  // [rows] the rows that a row attends to, ascending; the row itself is last
  std::vector<MaskRegion> regions;  // the regions in the order of the rows
  /// Returns true if a row attends to another.
  bool seen(int row, int other) const;
};

/// Returns the mask of a token tree.
Mask mask_of(const engine::TokenTree& tree, Proposer proposer = Proposer::Other);

/// Returns the headings above the regions: the name, the short name if the name is too wide, or nothing.
/// @param cell   width of a column
/// @param right  width from the first column to the edge, which the last heading may use
/// @param width  computes the width of a text
std::vector<std::string> region_heads(const Mask& mask,
                                      float cell,
                                      float right,
                                      const std::function<float(const std::string&)>& width);

}  // namespace ui

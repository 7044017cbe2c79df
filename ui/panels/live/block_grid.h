// A block's iterations drawn as a grid: rows below each other, the line of what is proved final and
// that of what is right in hindsight, brackets under fast-forwarded tokens. Panel Trajectory and
// the probes of a training draw the same.
#pragma once

#include <functional>
#include <string>

#include "ui/widgets/draw.h"
#include "ui/prepare/tokens/trajectory.h"

namespace ui {

/// What a grid's cells say and do, where they are.
struct GridCells {
  std::function<std::string(engine::TokenId)> text;
  /// Of a cell pointed at: "step 12", behind what the cell is. May be empty.
  std::function<std::string(const GridRow& row, int position)> where = {};
  std::function<void(const GridRow&row, int position)> hovered = {}, clicked = {};  // likewise
  /// What selection adds to a cell's look. Likewise.
  std::function<void(const GridRow& row, int position, CellFlags& flags)> select = {};
  bool marks = true;
};

/// At the cursor, which it moves below itself.
void draw_block_grid(const Grid& grid, const GridCells& cells);

}  // namespace ui

// The iterations of a Jacobi block as a grid: one row per iteration, a line after the tokens proved final, a dotted line after those that
// are correct in hindsight, and brackets under fast-forwarded tokens. The panels Trajectory and Probe trajectory use it.
#pragma once

#include <functional>
#include <string>

#include <imgui.h>

#include "engine/base/types.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct CellFlags;
struct Grid;
struct GridRow;

/// The view options of both panels. Key H changes `hindsight` too.
struct BlockGridView : PanelState {
  bool hindsight = true;      // draw the dotted line and mark stationary tokens
  bool only_changed = false;  // draw tokens that an iteration did not change as dots
};

/// Callbacks for a grid's cells: their text and their reactions to the mouse. All functions except `text` may be empty.
struct GridCells {
  std::function<std::string(engine::TokenId)> text;
  /// Returns the end of a cell's tooltip: "step 12".
  std::function<std::string(const GridRow& row, int position)> where = {};
  std::function<void(const GridRow& row, int position)> hovered = {};
  std::function<void(const GridRow& row, int position)> clicked = {};
  /// Adds the highlights of the selection.
  std::function<void(const GridRow& row, int position, CellFlags& flags)> select = {};
  bool marks = true;
};

/// Returns the width of the columns of a grid, in px, so that a text of `n` characters is whole up to a limit. It never decreases in a
/// window, so that the columns do not move back and forth from step to step.
float column_width(int n);

/// Draws the grid at the cursor and moves the cursor below it. The numbers of the iterations stay at the left edge when the grid is scrolled.
/// @return  screen x after the tokens that the last row has proved final
float draw_block_grid(const Grid& grid, const GridCells& cells);

}  // namespace ui

// The grid of a block's iterations: rows are iterations, newest at the bottom, columns are
// positions. What is proved final comes from agreement alone; what was merely right early is known
// in hindsight, once the position is committed, and only then relabelled: a live view that coloured
// it would be guessing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/event/timeline/trajectory.h"
#include "ui/widgets/theme.h"

namespace ui {

struct GridCell {
  engine::TokenId token = 0;
  Mean mean = Mean::Guess;
  bool changed = false;   // against the row above
  bool hidden = false;    // by only_changes()
  int unchanged_for = 0;  // iterations
};

struct GridRow {
  engine::StepId step = 0;
  int block = 0, iteration = 0;
  int first_column = 0;  // of cells[0]
  std::vector<GridCell> cells;
  int n_proved = 0;        // newly proved final by this iteration
  int final_column = 0;    // columns before it are proved final
  int correct_column = 0;  // columns before it are right, in hindsight
  bool converged = false;
};

struct Grid {
  int first_position = 0;
  int n_columns = 0;
  std::vector<GridRow> rows;
  int n_rows_left_out = 0;   // older ones of the same block
  int n_fast_forward = 0;    // tokens proved by iterations that proved two or more
  int n_rows_unchanged = 0;  // left out by only_changes()
  bool hindsight = false;
  /// What the decoder's metrics count of this block: in hindsight, of a whole one alone.
  std::optional<engine::TrajectoryCounts> counts;
};

/// The block at step index `n_steps - 1` (the last shown), at most `max_rows` of its iterations.
/// A sliding block (a new first position each step) shows its last iterations as a staircase.
/// Empty when no step shown refined a block.
/// @param block  this block alone, wherever it ended before; -1: the last
Grid trajectory_grid(const engine::RunRecord& run,
                     std::size_t n_steps,
                     bool hindsight,
                     std::size_t max_rows = 40,
                     int block = -1);

/// A block that has converged, told by its states alone: the guess it began with, each iteration,
/// and the one in which nothing changed, which proved the rest final.
/// What a run's block looks like.
/// @param states  [0] the guess, the last the fixed point; of one length, at least one
Grid states_grid(std::span<const std::vector<engine::TokenId>> states, bool hindsight);

/// A block that was done with before the one a grid shows: one row stands for its iterations.
struct FoldedBlock {
  int block = 0;
  int n_iterations = 0;
  std::size_t n_steps = 0;  // up to and with its last iteration
  int first_position = 0;
  std::vector<engine::TokenId> tokens;  // as they stood in the end
};
struct FoldedBlocks {
  std::vector<FoldedBlock> blocks;  // oldest first
  bool more_before = false;         // older ones were left out, or their states were let go
};
/// Blocks before the last one refined by the first `n_steps` steps, the newest `limit` of them.
FoldedBlocks older_blocks(const engine::RunRecord& run, std::size_t n_steps, std::size_t limit);

/// What became of a row that was proposed: as the mark of its cell says it.
Mean fate_of(const engine::StepRecord& step, int row);

/// Hides the cells an iteration left as they were: same token as in the row above, and not proved
/// final by it. Rows with no other cells are left out.
void only_changes(Grid& grid);

/// Lookahead's window at one step: rows are levels, columns are window columns.
struct WindowGrid {
  std::vector<std::vector<int>> row_of;      // [levels][columns] row of the step's tree, -1: none
  std::vector<std::vector<int>> candidates;  // rows of each n-gram under judgement, in
                                             // order; those it shares with another among them
};
WindowGrid window_grid(const engine::StepRecord& step);

}  // namespace ui

// The grid of a Jacobi block: one row per iteration, one column per position. A token is proved final by agreement of two iterations. A token
// that was correct earlier is marked only in hindsight, after its position has been committed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/timeline/trajectory.h"
#include "ui/widgets/theme.h"

namespace engine {
struct RunRecord;
struct StepRecord;
}  // namespace engine

namespace ui {

/// A token of an iteration.
struct GridCell {
  engine::TokenId token = 0;
  Mean mean = Mean::Guess;
  bool changed = false;   // the token differs from the one in the row above
  bool hidden = false;    // hidden by only_changes()
  int unchanged_for = 0;  // number of iterations without a change
};

/// An iteration.
struct GridRow {
  engine::StepId step = 0;
  int block = 0, iteration = 0;
  int first_column = 0;  // column of cells[0]
  std::vector<GridCell> cells;
  int n_proved = 0;        // number of tokens that this iteration proved final
  int final_column = 0;    // columns before it are proved final
  int correct_column = 0;  // columns before it are correct in hindsight
  bool converged = false;
};

/// A block.
struct Grid {
  int first_position = 0;
  int n_columns = 0;
  std::vector<GridRow> rows;
  int n_rows_left_out = 0;   // number of older iterations that were omitted
  int n_fast_forward = 0;    // tokens proved by iterations that proved at least two
  int n_rows_unchanged = 0;  // number of rows that only_changes() removed
  bool hindsight = false;
  /// The counts of the decoder's metrics for a complete block, in hindsight.
  std::optional<engine::TrajectoryCounts> counts;
};

/// Returns the last block refined by the first `n_steps` steps, with at most `max_rows` of its iterations; empty if no step refined a block. A
/// sliding block, whose first position changes with each step, gives a staircase.
/// @param block  the number of another block; -1: the last
Grid trajectory_grid(const engine::RunRecord& run,
                     std::size_t n_steps,
                     bool hindsight,
                     std::size_t max_rows = 40,
                     int block = -1);

/// Returns the grid of a converged block, from its states. Its rows are the initial guess, every iteration,
/// and a last iteration without a change, which proves the remaining tokens final.
/// @param states  [0] is the guess, the last is the fixed point; all of one length, at least one
Grid states_grid(std::span<const std::vector<engine::TokenId>> states, bool hindsight);

/// An earlier block, drawn as one row.
struct FoldedBlock {
  int block = 0;
  int n_iterations = 0;
  std::size_t n_steps = 0;  // number of steps up to its last iteration
  int first_position = 0;
  std::vector<engine::TokenId> tokens;  // its fixed point
};
/// Earlier blocks.
struct FoldedBlocks {
  std::vector<FoldedBlock> blocks;  // oldest first
  bool more_before = false;         // older blocks were omitted, or their states were dropped
};
/// Returns the newest `limit` blocks before the last one that the first `n_steps` steps refined.
FoldedBlocks older_blocks(const engine::RunRecord& run, std::size_t n_steps, std::size_t limit);

/// Returns the result of a proposed row as a meaning.
Mean fate_of(const engine::StepRecord& step, int row);

/// Hides the tokens that an iteration neither changed nor proved final. Removes rows of which all
/// tokens are hidden.
void only_changes(Grid& grid);

/// Lookahead's window at one step: one row per level, one column per position.
struct WindowGrid {
  std::vector<std::vector<int>> row_of;      // [levels][columns] row of the step's tree, -1: none
  std::vector<std::vector<int>> candidates;  // rows of each candidate n-gram in order,
                                             // including those shared with others
};
/// Returns the window of a step.
WindowGrid window_grid(const engine::StepRecord& step);

}  // namespace ui

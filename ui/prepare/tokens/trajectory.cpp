#include "ui/prepare/tokens/trajectory.h"

#include <algorithm>
#include <map>

#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

using engine::BlockRefined;

// Number of steps that are searched for a block; decoders with blocks report one in nearly every step.
constexpr std::size_t kMaxLookBack = 4096;

// Returns the iterations of one block or of consecutive sliding blocks, newest first.
std::vector<BlockRefined> iterations_shown(const engine::RunRecord& run,
                                           std::size_t n_steps,
                                           std::size_t max_rows,
                                           int block,
                                           int& n_left_out) {
  std::vector<BlockRefined> shown;
  n_left_out = 0;
  for (std::size_t i = n_steps; i-- > 0;) {
    if (shown.empty() && n_steps - i > kMaxLookBack) return shown;
    if (run.steps.head(i).n_blocks == 0) continue;
    const engine::StepRecord step = run.steps[i];
    if (step.blocks.empty()) return shown;  // this state and all earlier ones were dropped
    for (std::size_t k = step.blocks.size(); k-- > 0;) {
      const BlockRefined& b = step.blocks[k];
      if (shown.empty() && block >= 0 && b.block != block) continue;
      if (!shown.empty() && b.block != shown.front().block) return shown;
      if (shown.size() == max_rows) {
        ++n_left_out;
        if (n_left_out > 1'000) return shown;
        continue;
      }
      shown.push_back(b);
    }
  }
  return shown;
}

// Returns the tokens committed by the steps shown, by position.
std::map<int, engine::TokenId> known_tokens(const engine::RunRecord& run,
                                            std::size_t n_steps,
                                            int first,
                                            int last) {
  std::map<int, engine::TokenId> known;
  if (n_steps == 0 || run.tokens.empty()) return known;
  const engine::StepId newest = run.steps.head(n_steps - 1).begun.step;
  const int origin = run.tokens.front().pos;
  for (int p = std::max(first, origin); p <= last; ++p) {
    const std::size_t i = static_cast<std::size_t>(p - origin);
    if (i >= run.tokens.size() || run.tokens[i].step > newest) break;
    known[p] = run.tokens[i].id;
  }
  return known;
}

// Returns the row of an iteration.
// @param proved_before  the first position that earlier iterations did not prove final
GridRow row_of(const BlockRefined& b, int first_position, int proved_before) {
  GridRow row;
  row.step = b.step;
  row.block = b.block;
  row.iteration = b.iteration;
  row.converged = b.converged;
  row.first_column = b.first_pos - first_position;
  const int proved = b.first_pos + b.n_final;
  row.n_proved = std::max(0, proved - std::max(proved_before, b.first_pos));
  row.final_column = std::max(proved, proved_before) - first_position;
  for (std::size_t i = 0; i < b.tokens.size(); ++i) {
    const int position = b.first_pos + static_cast<int>(i);
    GridCell cell;
    cell.token = b.tokens[i];
    if (position < proved_before)
      cell.mean = Mean::Prefix;
    else if (position < proved)
      cell.mean = row.n_proved >= 2 ? Mean::FastForward : Mean::Accepted;
    row.cells.push_back(cell);
  }
  return row;
}

// Returns the cell of the previous iteration in the same column, or nullptr.
const GridCell* above(const Grid& grid, std::size_t row, int column) {
  if (row == 0) return nullptr;
  const GridRow& up = grid.rows[row - 1];
  const int i = column - up.first_column;
  return i >= 0 && i < static_cast<int>(up.cells.size()) ? &up.cells[i] : nullptr;
}

// Compares each cell with the cell above it.
void mark_changes(Grid& grid) {
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    GridRow& row = grid.rows[r];
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      GridCell& cell = row.cells[i];
      const GridCell* up = above(grid, r, row.first_column + static_cast<int>(i));
      cell.changed = up && up->token != cell.token;
      cell.unchanged_for = up && up->token == cell.token ? up->unchanged_for + 1 : 0;
    }
  }
}

// Marks stationary tokens, from the last row up: a token is stationary if it is correct, stays correct in every later row, and follows an
// incorrect token.
void relabel_in_hindsight(Grid& grid, const std::map<int, engine::TokenId>& known) {
  std::vector<bool> right_below(static_cast<std::size_t>(grid.n_columns), true);
  for (std::size_t r = grid.rows.size(); r-- > 0;) {
    GridRow& row = grid.rows[r];
    bool front = true;
    row.correct_column = row.first_column;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const int column = row.first_column + static_cast<int>(i);
      const auto truth = known.find(grid.first_position + column);
      const bool right = truth != known.end() && truth->second == row.cells[i].token;
      right_below[column] = right_below[column] && right;
      if (!right) front = false;
      if (front) row.correct_column = column + 1;
      // The initial guess is not the result of an iteration.
      if (!front && right_below[column] && row.iteration > 0 && row.cells[i].mean == Mean::Guess)
        row.cells[i].mean = Mean::Stationary;
    }
  }
}

// Returns the counts of a block whose states are all known, from the initial guess to the fixed point or to
// the iteration in which the text ended. Positions after the end of the text are not counted.
std::optional<engine::TrajectoryCounts> counts_of_whole(std::span<const BlockRefined> shown,
                                                        const std::map<int, engine::TokenId>& known,
                                                        bool ended) {
  if (shown.front().iteration != 0 || !(shown.back().converged || ended)) return std::nullopt;
  const int first = shown.front().first_pos;
  std::size_t n = 0;
  while (n < shown.front().tokens.size() && known.contains(first + static_cast<int>(n))) n++;
  std::vector<std::vector<engine::TokenId>> points;
  for (const BlockRefined& b : shown) {
    if (b.first_pos != first || b.tokens.size() < n) return std::nullopt;  // the block slides
    points.emplace_back(b.tokens.begin(), b.tokens.begin() + static_cast<std::ptrdiff_t>(n));
  }
  if (n == 0) return std::nullopt;
  return engine::count_trajectory(points);
}

// Builds the grid of iterations, oldest first.
Grid grid_of(std::span<const BlockRefined> shown) {
  Grid grid;
  if (shown.empty()) return grid;
  grid.first_position = shown.front().first_pos;
  int end = grid.first_position;
  for (const BlockRefined& b : shown) {
    grid.first_position = std::min(grid.first_position, b.first_pos);
    end = std::max(end, b.first_pos + static_cast<int>(b.tokens.size()));
  }
  grid.n_columns = end - grid.first_position;
  int proved = grid.first_position;
  for (const BlockRefined& b : shown) {
    grid.rows.push_back(row_of(b, grid.first_position, std::max(proved, b.first_pos)));
    const GridRow& row = grid.rows.back();
    if (row.n_proved >= 2) grid.n_fast_forward += row.n_proved;
    proved = std::max(proved, b.first_pos + b.n_final);
  }
  mark_changes(grid);
  return grid;
}

}  // namespace

Grid trajectory_grid(const engine::RunRecord& run,
                     std::size_t n_steps,
                     bool hindsight,
                     std::size_t max_rows,
                     int block) {
  n_steps = std::min(n_steps, run.steps.size());
  int n_left_out = 0;
  auto shown = iterations_shown(run, n_steps, max_rows, block, n_left_out);
  std::reverse(shown.begin(), shown.end());
  Grid grid = grid_of(shown);
  grid.n_rows_left_out = n_left_out;
  if (shown.empty()) return grid;
  const int end = grid.first_position + grid.n_columns;
  const auto known = known_tokens(run, n_steps, grid.first_position, end - 1);
  grid.hindsight = hindsight && !known.empty();
  if (!grid.hindsight) return grid;
  relabel_in_hindsight(grid, known);
  const bool ended = run.finished && run.finished->stop_reason == "eos" &&
                     shown.back().step == run.steps.head(run.steps.size() - 1).begun.step;
  if (n_left_out == 0) grid.counts = counts_of_whole(shown, known, ended);
  return grid;
}

Grid states_grid(std::span<const std::vector<engine::TokenId>> states, bool hindsight) {
  std::vector<BlockRefined> iterations;
  const auto n = static_cast<int>(states.front().size());
  for (std::size_t t = 0; t <= states.size(); ++t) {
    const auto& tokens = states[std::min(t, states.size() - 1)];
    BlockRefined one{.iteration = static_cast<int>(t), .tokens = tokens};
    if (t > 0) {
      const auto& before = states[t - 1];
      const auto changed = std::ranges::mismatch(tokens, before).in1;
      one.n_final = std::min(static_cast<int>(changed - tokens.begin()) + 1, n);
    }
    one.converged = t == states.size();
    iterations.push_back(std::move(one));
  }
  Grid grid = grid_of(iterations);
  grid.hindsight = hindsight;
  std::map<int, engine::TokenId> known;
  for (int i = 0; i < n; ++i) known[i] = states.back()[static_cast<std::size_t>(i)];
  if (hindsight) relabel_in_hindsight(grid, known);
  return grid;
}

// The search runs backwards, so the first state that it finds of a block is the block's last state.
FoldedBlocks older_blocks(const engine::RunRecord& run, std::size_t n_steps, std::size_t limit) {
  FoldedBlocks folded;
  n_steps = std::min(n_steps, run.steps.size());
  int newest = -1, at = -1;  // numbers of blocks
  for (std::size_t i = n_steps; i-- > 0 && !folded.more_before;) {
    if (n_steps - i > kMaxLookBack) folded.more_before = true;
    if (run.steps.head(i).n_blocks == 0) continue;
    const engine::StepRecord step = run.steps[i];
    if (step.blocks.empty()) folded.more_before = true;  // this and all earlier states were dropped
    for (std::size_t k = step.blocks.size(); k-- > 0;) {
      const BlockRefined& b = step.blocks[k];
      if (newest < 0) newest = b.block;
      if (b.block == newest) continue;
      if (b.block != at && folded.blocks.size() == limit) {
        folded.more_before = true;
        break;
      }
      if (b.block != at)
        folded.blocks.push_back({.block = b.block,
                                 .n_steps = i + 1,
                                 .first_position = b.first_pos,
                                 .tokens = b.tokens});
      at = b.block;
      if (b.iteration > 0) ++folded.blocks.back().n_iterations;  // iteration 0 is the initial guess
    }
  }
  std::reverse(folded.blocks.begin(), folded.blocks.end());
  return folded;
}

Mean fate_of(const engine::StepRecord& step, int row) {
  if (row >= static_cast<int>(step.verified.fate.size())) return Mean::Pool;
  const engine::RowFate fate = step.verified.fate[static_cast<std::size_t>(row)];
  return fate == engine::RowFate::Accepted   ? Mean::Accepted
         : fate == engine::RowFate::Rejected ? Mean::Rejected
         : fate == engine::RowFate::Unused   ? Mean::Unused
                                             : Mean::Pool;
}

void only_changes(Grid& grid) {
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    GridRow& row = grid.rows[r];
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      GridCell& cell = row.cells[i];
      const bool is_first = above(grid, r, row.first_column + static_cast<int>(i)) == nullptr;
      const bool proved = cell.mean == Mean::Accepted || cell.mean == Mean::FastForward;
      cell.hidden = !is_first && !cell.changed && !proved;
    }
  }
  grid.n_rows_unchanged = static_cast<int>(std::erase_if(grid.rows, [](const GridRow& row) {
    return std::ranges::all_of(row.cells, &GridCell::hidden);
  }));
}

WindowGrid window_grid(const engine::StepRecord& step) {
  WindowGrid grid;
  const engine::TokenTree& tree = step.drafted.tree;
  std::map<int, std::vector<std::pair<int, int>>> guesses;  // n-gram -> (index, row)
  for (int i = 0; i < tree.n_rows(); ++i) {
    const engine::RowTag tag = tree.tag[i];
    if (tag.kind == engine::RowTag::Kind::Guess) guesses[tag.a].push_back({tag.b, i});
    if (tag.kind != engine::RowTag::Kind::Window || tag.a < 0 || tag.b < 0) continue;
    if (grid.row_of.size() <= static_cast<std::size_t>(tag.a)) grid.row_of.resize(tag.a + 1);
    std::vector<int>& level = grid.row_of[tag.a];
    if (level.size() <= static_cast<std::size_t>(tag.b)) level.resize(tag.b + 1, -1);
    level[tag.b] = i;
  }
  for (auto& [ngram, rows] : guesses) {
    std::sort(rows.begin(), rows.end());
    std::vector<int>& list = grid.candidates.emplace_back();
    // N-grams with a common beginning share the rows of that beginning. Such a row has the index of
    // the first of these n-grams.
    for (int row = tree.parent[rows.front().second];
         row >= 0 && tree.tag[row].kind == engine::RowTag::Kind::Guess; row = tree.parent[row])
      list.insert(list.begin(), row);
    for (const auto& [index, row] : rows) list.push_back(row);
  }
  return grid;
}

}  // namespace ui

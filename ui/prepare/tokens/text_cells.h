// A run's tokens as cells: the meaning of each token at the playhead, and the layout of the cells.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "ui/widgets/theme.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// A token.
struct TextCell {
  engine::TokenId token = 0;
  std::string text;  // printable text; a line feed is a pilcrow
  Mean mean = Mean::Prefix;
  Mean origin = Mean::Prefix;  // the way in which an accepted token was proposed
  engine::RowTag tag;          // of the row that proposed a committed token
  int position = 0;
  engine::StepId step = -1;  // the step that committed or proposed it; -1: the prompt
  int row = -1;              // row of the step's tree; -1: none
  float logp = 0;
  bool has_logp = false;
  double cost_ns = 0;     // own compute of the step / tokens that the step committed
  bool committed = true;  // false: a proposal of the step at the playhead
  bool diverged = false;  // true: it is the first token that differs from plain decoding
  bool ends_line = false;
};

/// Returns the meaning of a proposal by the kind of its row.
Mean mean_of(engine::RowTag::Kind kind);
/// Returns the meaning of a committed token.
Mean mean_of(engine::TokenStatus status);

/// Returns the cells of the prompt, of the tokens committed by the first `n_steps` steps, and of
/// uncommitted proposals. These are from the last of the steps or, with `live`, from the step in
/// progress.
std::vector<TextCell> text_cells(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 std::size_t n_steps,
                                 bool live);

/// The positions of thin bars in the text.
struct TextEdges {
  int caret = 0;  // the first position that is not committed
  /// First and last position of the block that is being refined; -1 if there is none or it has converged.
  int block_first = -1, block_last = -1;
};
/// Returns the bars after the first `n_steps` steps or, with `live`, in the step in progress.
TextEdges text_edges(const engine::RunRecord& run, std::size_t n_steps, bool live);

/// Returns the text of a token in a cell, with line feeds as pilcrows.
std::string cell_text(const engine::Timeline& timeline,
                      const engine::RunRecord& run,
                      engine::TokenId id);

/// Returns the number of columns of a text in a monospaced font: 2 for a wide character or an emoji, 0 for a combining mark, else 1.
int n_columns(const std::string& text);

/// The place of a cell: px within its line.
struct CellBox {
  float x = 0, width = 0;
  int line = 0;
};

/// Widths in px.
struct CellMetrics {
  float character = 7;  // width of a character of the monospaced font
  float padding = 10;   // padding of a filled cell, both sides together
  float mark = 5;       // width of a mark's character
  float gap = 2;        // distance between cells
  bool operator==(const CellMetrics&) const = default;
};

/// Lays out cells in lines of at most `width` px; a wider cell is clipped to the line.
/// @param flowing  true: running text without padding and marks
std::vector<CellBox> lay_out(std::span<const TextCell> cells,
                             float width,
                             const CellMetrics& metrics,
                             bool flowing);

/// Lays out the generated tokens of several lanes together: tokens with the same index have the same place and width in all lanes.
/// @param lanes  the cells of each lane, from its first generated token on
/// @param width  of the lines, px, as in lay_out()
std::vector<std::vector<CellBox>> lay_out_aligned(
    const std::vector<std::span<const TextCell>>& lanes,
    float width,
    const CellMetrics& metrics,
    bool flowing);

}  // namespace ui

// The answer as cells: what each token stands for at the playhead, and where its cell goes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/widgets/theme.h"

namespace ui {

struct TextCell {
  engine::TokenId token = 0;
  std::string text;  // printable; newlines shown as a sign
  Mean mean = Mean::Prefix;
  Mean origin = Mean::Prefix;  // of an accepted token: what had proposed it
  int position = 0;
  engine::StepId step = -1;  // that committed or proposed it; -1: the prompt
  int row = -1;              // of the step's tree; -1: none
  float logp = 0;
  bool has_logp = false;
  double cost_ns = 0;     // its share of its step's own compute
  bool committed = true;  // else a proposal of the step at the playhead
  bool diverged = false;  // the first token that differs from plain decoding
  bool ends_line = false;
};

/// Which meaning a proposal's row has, by what made it.
Mean mean_of(engine::RowTag::Kind kind);
Mean mean_of(engine::TokenStatus status);

/// Cells of the prompt, of what the first `n_steps` steps committed, and of what the last of them
/// (or the one in flight, `live`) proposed and did not keep.
std::vector<TextCell> text_cells(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 std::size_t n_steps,
                                 bool live);

/// Where thin bars stand in the text, as positions from the sequence's start.
struct TextEdges {
  int caret = 0;  // the first position that is not committed
  /// Of the block being refined, both included; -1: there is none, or it has settled.
  int block_first = -1, block_last = -1;
};
/// At the end of the first `n_steps` steps, or in the step after them that is in flight (`live`).
TextEdges text_edges(const engine::RunRecord& run, std::size_t n_steps, bool live);

/// A token's text as a cell shows it: line feeds as a pilcrow, which the writing font has.
std::string cell_text(const engine::Timeline& timeline,
                      const engine::RunRecord& run,
                      engine::TokenId id);

/// Columns of a monospaced font a text takes: 2 for a character of a wide script or an emoji, 0 for
/// a combining mark, else 1.
int n_columns(const std::string& text);

struct CellBox {
  float x = 0, width = 0;
  int line = 0;
};

struct CellMetrics {
  float character = 7;  // width of one, of the writing font
  float padding = 10;   // of a filled cell, both sides together
  float mark = 5;       // width of a mark's character
  float gap = 2;        // between cells
  bool operator==(const CellMetrics&) const = default;
};

/// Boxes of the cells, flowing, in lines of at most `width`. A cell wider than a line is cut to it.
/// `flowing` leaves out padding and marks: running text.
std::vector<CellBox> lay_out(std::span<const TextCell> cells,
                             float width,
                             const CellMetrics& metrics,
                             bool flowing);

}  // namespace ui

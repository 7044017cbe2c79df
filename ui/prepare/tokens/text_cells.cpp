#include "ui/prepare/tokens/text_cells.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/line_feeds.h"

namespace ui {
namespace {

using engine::RowFate;
using engine::RowTag;
using engine::TokenStatus;

bool put_pilcrows(std::string& text, const std::string& sign) {
  bool found = false;
  for (std::size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at + 2)) {
    text.replace(at, sign.size(), "\xC2\xB6");
    found = true;
  }
  return found;
}

// Returns the number of columns of a character, from the blocks of Unicode's East Asian Width.
int columns_of(std::uint32_t code) {
  struct Block {
    std::uint32_t first, last;
    int columns;
  };
  static constexpr std::array<Block, 16> kBlocks{{{0x0300, 0x036F, 0},
                                                  {0x1100, 0x115F, 2},
                                                  {0x200B, 0x200F, 0},
                                                  {0x20D0, 0x20FF, 0},
                                                  {0x2E80, 0x303E, 2},
                                                  {0x3041, 0xA4CF, 2},
                                                  {0xAC00, 0xD7A3, 2},
                                                  {0xF900, 0xFAFF, 2},
                                                  {0xFE00, 0xFE0F, 0},
                                                  {0xFE30, 0xFE6F, 2},
                                                  {0xFF01, 0xFF60, 2},
                                                  {0xFFE0, 0xFFE6, 2},
                                                  {0x1F300, 0x1F64F, 2},
                                                  {0x1F680, 0x1F6FF, 2},
                                                  {0x1F900, 0x1FAFF, 2},
                                                  {0x20000, 0x3FFFD, 2}}};
  for (const Block& block : kBlocks)
    if (code >= block.first && code <= block.last) return block.columns;
  return 1;
}

TextCell cell_of(const engine::Timeline& timeline,
                 const engine::RunRecord& run,
                 engine::TokenId id) {
  TextCell cell;
  cell.token = id;
  cell.text = timeline.name_of(run, id);
  cell.ends_line = show_line_feeds(cell.text);
  if (cell.text.empty()) cell.text = " ";
  return cell;
}

// Returns the own compute of a step per committed token, ns.
double cost_of(const engine::StepHead& step) {
  const engine::StepEnded& e = step.ended;
  const double own = static_cast<double>(e.propose + e.forward + e.verify + e.commit);
  return step.n_tokens == 0 ? 0 : own / step.n_tokens;
}

void add_prompt(std::vector<TextCell>& cells,
                const engine::Timeline& timeline,
                const engine::RunRecord& run) {
  for (std::size_t i = 0; i < run.started.prompt_tokens.size(); ++i) {
    TextCell cell = cell_of(timeline, run, run.started.prompt_tokens[i]);
    cell.position = static_cast<int>(i);
    if (run.is_approximate_in_prompt(cell.position)) cell.mean = Mean::Approximate;
    cells.push_back(std::move(cell));
  }
}

void add_committed(std::vector<TextCell>& cells,
                   const engine::Timeline& timeline,
                   const engine::RunRecord& run,
                   std::size_t n_steps) {
  const engine::StepId last = n_steps == 0 ? -1 : run.steps.head(n_steps - 1).begun.step;
  std::size_t at = 0;
  engine::StepHead step = n_steps > 0 ? run.steps.head(0) : engine::StepHead{};
  int index = 0;
  for (const engine::TokenRecord& token : run.tokens) {
    if (token.step > last) break;
    while (at + 1 < n_steps && step.begun.step < token.step) step = run.steps.head(++at);
    TextCell cell = cell_of(timeline, run, token.id);
    const auto place = static_cast<std::size_t>(index);
    if (timeline.drops_space_of(run, place)) cell.text.erase(0, 1);
    cell.mean = mean_of(token.status);
    cell.tag = token.origin;
    if (cell.mean == Mean::Accepted) cell.origin = mean_of(token.origin.kind);
    cell.position = token.pos;
    cell.step = token.step;
    cell.logp = token.logp;
    cell.has_logp = token.has_logp;
    if (step.begun.step == token.step) cell.cost_ns = cost_of(step);
    cell.diverged = run.agreement && run.agreement->first_difference == index;
    cells.push_back(std::move(cell));
    ++index;
  }
}

// Shows a character whose bytes are in several tokens in the cell of the last of them, and an ellipsis in the others. An incomplete character keeps the
// names of its bytes.
void join_characters(std::vector<TextCell>& cells,
                     const engine::Timeline& timeline,
                     const engine::RunRecord& run) {
  std::string open;  // bytes of a character that has begun
  // The cells that begin it, with the names of their bytes.
  std::vector<std::pair<std::size_t, std::string>> begun;
  const auto give_up = [&] {
    for (auto& [i, text] : begun) cells[i].text = std::move(text);
    begun.clear();
    open.clear();
  };
  const std::size_t n_prompt = run.started.prompt_tokens.size();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string bytes = i < n_prompt ? timeline.bytes_of(run, {&cells[i].token, 1})
                                           : timeline.generated_bytes(run, i - n_prompt);
    if (bytes.empty()) continue;  // a control symbol
    if (!open.empty() && !engine::begins_with_character(open + bytes) &&
        engine::open_bytes_at_end(open + bytes) != open.size() + bytes.size())
      give_up();
    const std::string all = open + bytes;
    const std::size_t n_open = engine::open_bytes_at_end(all);
    if (open.empty() && n_open == 0) continue;
    if (n_open < all.size()) begun.clear();  // the character before is complete
    if (n_open > 0) begun.emplace_back(i, cells[i].text);
    cells[i].text = engine::printable(all.substr(0, all.size() - n_open));
    cells[i].ends_line = show_line_feeds(cells[i].text);
    if (n_open > 0) cells[i].text += "\xE2\x80\xA6";
    open = all.substr(all.size() - n_open);
  }
  give_up();
}

// Returns the cell of a proposed row.
TextCell proposal(const engine::Timeline& timeline,
                  const engine::RunRecord& run,
                  const engine::StepRecord& step,
                  int row,
                  int position,
                  Mean mean) {
  TextCell cell = cell_of(timeline, run, step.drafted.tree.token[row]);
  cell.mean = mean;
  cell.position = position;
  cell.step = step.begun.step;
  cell.row = row;
  cell.committed = false;
  return cell;
}

// Adds the first rejected row after the accepted path and the unused rows after it.
void add_rejected(std::vector<TextCell>& cells,
                  const engine::Timeline& timeline,
                  const engine::RunRecord& run,
                  const engine::StepRecord& step,
                  int position) {
  const engine::TokenTree& tree = step.drafted.tree;
  const std::vector<RowFate>& fate = step.verified.fate;
  int at = -1;
  for (int i = 0; i < tree.n_rows() && i < static_cast<int>(fate.size()) && at < 0; ++i)
    if (fate[i] == RowFate::Rejected) at = i;
  if (at < 0) return;
  cells.push_back(proposal(timeline, run, step, at, position++, Mean::Rejected));
  for (int i = at + 1; i < tree.n_rows() && i < static_cast<int>(fate.size()); ++i) {
    if (tree.parent[i] != at || fate[i] != RowFate::Unused) continue;
    cells.push_back(proposal(timeline, run, step, i, position++, Mean::Unused));
    at = i;
  }
}

// Adds the first chain of proposals of a step that has not been verified yet.
void add_proposed(std::vector<TextCell>& cells,
                  const engine::Timeline& timeline,
                  const engine::RunRecord& run,
                  const engine::StepRecord& step,
                  int position) {
  const engine::TokenTree& tree = step.drafted.tree;
  int at = 0;
  for (int i = 1; i < tree.n_rows(); ++i) {
    const RowTag::Kind kind = tree.tag[i].kind;
    if (tree.parent[i] != at || kind == RowTag::Kind::Window || kind == RowTag::Kind::Current)
      continue;
    cells.push_back(proposal(timeline, run, step, i, position++, mean_of(kind)));
    at = i;
  }
}

// Adds the guesses of the last refined block, from `position` on.
void add_block(std::vector<TextCell>& cells,
               const engine::Timeline& timeline,
               const engine::RunRecord& run,
               const engine::StepRecord& step,
               int position) {
  const engine::BlockRefined& block = step.blocks.back();
  for (std::size_t i = 0; i < block.tokens.size(); ++i) {
    if (block.first_pos + static_cast<int>(i) < position) continue;
    TextCell cell = cell_of(timeline, run, block.tokens[i]);
    cell.mean = Mean::Guess;
    cell.position = block.first_pos + static_cast<int>(i);
    cell.step = step.begun.step;
    cell.committed = false;
    cells.push_back(std::move(cell));
  }
}

// Adds the unverified tokens that a run kept when it stopped early.
void add_approximate(std::vector<TextCell>& cells,
                     const engine::Timeline& timeline,
                     const engine::RunRecord& run,
                     int position) {
  for (const engine::TokenId id : run.finished->approximate) {
    TextCell cell = cell_of(timeline, run, id);
    cell.mean = Mean::Approximate;
    cell.position = position++;
    if (!run.steps.empty()) cell.step = run.steps.head(run.steps.size() - 1).begun.step;
    cell.committed = false;
    cells.push_back(std::move(cell));
  }
}

}  // namespace

bool show_line_feeds(std::string& text) {
  const bool symbol = put_pilcrows(text, "\xE2\x90\x8A");  // U+240A
  return put_pilcrows(text, "\n") || symbol;
}

Mean mean_of(RowTag::Kind kind) {
  switch (kind) {
    case RowTag::Kind::Guess:
      return Mean::Pool;
    case RowTag::Kind::Draft:
      return Mean::Draft;
    case RowTag::Kind::Window:
    case RowTag::Kind::Block:
    case RowTag::Kind::Probe:
      return Mean::Guess;
    case RowTag::Kind::Current:
      break;
  }
  return Mean::Prefix;
}

Mean mean_of(TokenStatus status) {
  switch (status) {
    case TokenStatus::Accepted:
      return Mean::Accepted;
    case TokenStatus::Bonus:
      return Mean::Bonus;
    case TokenStatus::Approximate:
      return Mean::Approximate;
    case TokenStatus::Plain:
      break;
  }
  return Mean::Plain;
}

std::vector<TextCell> text_cells(const engine::Timeline& timeline,
                                 const engine::RunRecord& run,
                                 std::size_t n_steps,
                                 bool live) {
  std::vector<TextCell> cells;
  n_steps = std::min(n_steps, run.steps.size());
  add_prompt(cells, timeline, run);
  add_committed(cells, timeline, run, n_steps);
  join_characters(cells, timeline, run);
  const int position = cells.empty() ? 0 : cells.back().position + 1;
  if (live && n_steps < run.steps.size() && run.steps.head(n_steps).has_drafted) {
    add_proposed(cells, timeline, run, run.steps[n_steps], position);
  } else if (run.finished && n_steps == run.steps.size()) {
    // After a finished answer only approximate tokens follow.
    add_approximate(cells, timeline, run, position);
  } else if (n_steps > 0) {
    const engine::StepRecord& step = run.steps[n_steps - 1];
    if (!step.blocks.empty())
      add_block(cells, timeline, run, step, position);
    else if (step.has_drafted && step.has_verified)
      add_rejected(cells, timeline, run, step, position);
  }
  return cells;
}

TextEdges text_edges(const engine::RunRecord& run, std::size_t n_steps, bool live) {
  n_steps = std::min(n_steps, run.steps.size());
  TextEdges edges{.caret = run.first_generated()};
  const engine::StepId last = n_steps == 0 ? -1 : run.steps.head(n_steps - 1).begun.step;
  const auto beyond = std::ranges::upper_bound(run.tokens, last, {}, &engine::TokenRecord::step);
  edges.caret += static_cast<int>(beyond - run.tokens.begin());
  if (run.finished && n_steps == run.steps.size()) return edges;
  std::vector<engine::BlockRefined> blocks = run.early_blocks;
  if (n_steps > 0) blocks = run.steps[n_steps - 1].blocks;
  if (live && n_steps < run.steps.size() && run.steps.head(n_steps).n_blocks > 0)
    blocks = run.steps[n_steps].blocks;
  if (blocks.empty() || blocks.back().converged || blocks.back().tokens.empty()) return edges;
  edges.block_first = blocks.back().first_pos;
  edges.block_last = edges.block_first + static_cast<int>(blocks.back().tokens.size()) - 1;
  return edges;
}

std::string cell_text(const engine::Timeline& timeline,
                      const engine::RunRecord& run,
                      engine::TokenId id) {
  return cell_of(timeline, run, id).text;
}

int n_columns(const std::string& text) {
  int n = 0;
  for (std::string_view left = text; !left.empty();) {
    const engine::Utf8Char c = engine::utf8_at(left, 0);
    n += c.state == engine::Utf8Char::Valid ? columns_of(c.code_point) : 1;
    left.remove_prefix(static_cast<std::size_t>(c.length));
  }
  return n;
}

namespace {

// Returns true for a cell that is drawn as text alone.
bool is_plain(const TextCell& cell) {
  const Look& as = look(cell.mean);
  return as.border == Border::None && !as.filled;
}

float width_of(const TextCell& cell, const CellMetrics& metrics, bool flowing) {
  float w = static_cast<float>(n_columns(cell.text)) * metrics.character;
  if (flowing || is_plain(cell)) return w;
  w += metrics.padding +
       static_cast<float>(std::char_traits<char>::length(look(cell.mean).mark)) * metrics.mark;
  // A leading space replaces a part of the padding.
  return cell.text.starts_with(' ') ? w - metrics.padding * 0.4f : w;
}

// Places boxes of given widths one after the other in lines.
class Lines {
 public:
  Lines(float width, const CellMetrics& metrics)
      : width_(width), most_(std::max(width, metrics.character)) {}

  CellBox place(float w, float gap, bool ends_line) {
    w = std::min(w, most_);
    if (x_ > 0 && x_ + w > width_) next();
    const CellBox box{x_, w, line_};
    x_ += w + gap;
    if (ends_line) next();
    return box;
  }

 private:
  void next() {
    x_ = 0;
    ++line_;
  }
  float width_, most_, x_ = 0;
  int line_ = 0;
};

}  // namespace

std::vector<CellBox> lay_out(std::span<const TextCell> cells,
                             float width,
                             const CellMetrics& metrics,
                             bool flowing) {
  std::vector<CellBox> boxes;
  boxes.reserve(cells.size());
  Lines lines(width, metrics);
  for (const TextCell& cell : cells)
    boxes.push_back(lines.place(width_of(cell, metrics, flowing),
                                flowing || is_plain(cell) ? 0 : metrics.gap, cell.ends_line));
  return boxes;
}

std::vector<std::vector<CellBox>> lay_out_aligned(
    const std::vector<std::span<const TextCell>>& lanes,
    float width,
    const CellMetrics& metrics,
    bool flowing) {
  std::size_t n = 0;
  for (const auto& lane : lanes) n = std::max(n, lane.size());
  std::vector<std::vector<CellBox>> boxes(lanes.size());
  Lines lines(width, metrics);
  for (std::size_t i = 0; i < n; ++i) {
    float widest = 0;
    bool ends_line = false;
    for (const auto& lane : lanes) {
      if (i >= lane.size()) continue;
      widest = std::max(widest, width_of(lane[i], metrics, flowing));
      ends_line |= lane[i].ends_line;
    }
    const CellBox box = lines.place(widest, metrics.gap, ends_line);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      if (i < lanes[lane].size()) boxes[lane].push_back(box);
  }
  return boxes;
}

}  // namespace ui

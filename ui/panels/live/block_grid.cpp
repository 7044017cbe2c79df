#include "ui/panels/live/block_grid.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

struct GridSizes {
  float label, cell_width, cell_height, row_height;
};

// Returns the tooltip of a cell.
std::string facts_of_cell(const GridCells& cells,
                          const GridRow& row,
                          const GridCell& cell,
                          int position) {
  std::string facts =
      fmt::format("{}\n{}", cells.text(cell.token),
                  cell.mean == Mean::Prefix ? "proved final earlier" : look(cell.mean).name);
  if (cells.where) facts += " \xC2\xB7 " + cells.where(row, position);
  if (cell.unchanged_for > 0)
    facts += fmt::format("\nunchanged for {} iterations", cell.unchanged_for);
  if (cell.mean == Mean::Stationary)
    facts += "\nhindsight: correct early and not changed afterwards";
  return facts;
}

// Draws a cell and handles the mouse over it. Hidden cells are dots.
void grid_cell(const GridCells& cells,
               const GridRow& row,
               const GridCell& cell,
               int column,
               int position,
               ImVec2 min,
               ImVec2 max) {
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(column);
  if (ImGui::InvisibleButton("cell", {max.x - min.x, max.y - min.y}) && cells.clicked)
    cells.clicked(row, position);
  if (ImGui::IsItemHovered()) {
    if (cells.hovered) cells.hovered(row, position);
    tooltip(facts_of_cell(cells, row, cell, position));
  }
  ImGui::PopID();
  if (cell.hidden) {
    ImGui::GetWindowDrawList()->AddCircleFilled({(min.x + max.x) / 2, (min.y + max.y) / 2},
                                                px(1.5f), colour(theme().faint));
    return;
  }
  CellFlags flags;
  flags.marks = cells.marks;
  flags.dim = cell.mean == Mean::Prefix;
  flags.elide = true;
  if (cells.select) cells.select(row, position, flags);
  const std::string unchanged = fmt::format("?{}", cell.unchanged_for);
  if (cell.mean == Mean::Guess && cell.unchanged_for > 1) flags.mark = unchanged.c_str();
  token_cell(ImGui::GetWindowDrawList(), min, max, cells.text(cell.token), cell.mean, flags);
}

// Draws the solid line after the tokens proved final and the dotted line after those that are correct in hindsight, row by row.
void grid_stairs(const Grid& grid, ImVec2 at, const GridSizes& s) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto x_of = [&](int column) {
    return at.x + s.label + static_cast<float>(column) * s.cell_width - px(1.5f);
  };
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    const float y = at.y + static_cast<float>(r) * s.row_height, below = y + s.row_height;
    const float x = x_of(grid.rows[r].final_column);
    list->AddLine({x, y}, {x, below}, colour(theme().bright), px(2));
    if (r + 1 < grid.rows.size())
      list->AddLine({x, below}, {x_of(grid.rows[r + 1].final_column), below},
                    colour(theme().bright), px(2));
    if (!grid.hindsight || grid.rows[r].correct_column <= grid.rows[r].final_column) continue;
    const float dotted = x_of(grid.rows[r].correct_column);
    for (float d = y; d < below; d += px(5))
      list->AddLine({dotted, d}, {dotted, d + px(2)}, colour(look(Mean::Stationary).fill),
                    px(1.5f));
  }
}

// Draws a bracket under the tokens of an iteration that proved at least two tokens final.
void fast_forward_bracket(const GridRow& row, ImVec2 at, const GridSizes& s) {
  if (row.n_proved < 2) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float from =
      at.x + s.label + static_cast<float>(row.final_column - row.n_proved) * s.cell_width;
  const float to = at.x + s.label + static_cast<float>(row.final_column) * s.cell_width - px(4);
  const float y = at.y + s.cell_height + px(1.5f);
  list->AddLine({from, y}, {to, y}, colour(theme().bright), px(1));
  list->AddLine({from, y - px(3)}, {from, y}, colour(theme().bright), px(1));
  list->AddLine({to, y - px(3)}, {to, y}, colour(theme().bright), px(1));
}

}  // namespace

float column_width(int n) {
  constexpr float kLeast = 66, kMost = 120, kBeside = 24;  // padding, mark and gap
  ImGui::PushFont(fonts().mono, kMonoSize);
  const float text = ImGui::CalcTextSize("0").x / px(1) * static_cast<float>(n);
  ImGui::PopFont();
  float* widest = ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("column"), kLeast);
  *widest = std::clamp(text + kBeside, *widest, kMost);
  return px(*widest);
}

float draw_block_grid(const Grid& grid, const GridCells& cells) {
  int longest = 0;
  std::unordered_set<engine::TokenId> tokens;
  for (const GridRow& row : grid.rows)
    for (const GridCell& cell : row.cells)
      if (tokens.insert(cell.token).second)
        longest = std::max(longest, n_columns(cells.text(cell.token)));
  const GridSizes s{px(34), column_width(longest), px(22), px(28)};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowSize().x;
  const ImVec2 number{s.label - px(4), s.row_height};
  const float numbers_end = at.x + ImGui::GetScrollX() + number.x;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    const GridRow& row = grid.rows[r];
    const float y = at.y + static_cast<float>(r) * s.row_height + px(3);
    ImGui::PushID(static_cast<int>(r));
    float end = at.x + s.label;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const int column = row.first_column + static_cast<int>(i);
      const float x = at.x + s.label + static_cast<float>(column) * s.cell_width;
      end = x + s.cell_width;
      if (x + s.cell_width < numbers_end || x > right) continue;
      grid_cell(cells, row, row.cells[i], column, grid.first_position + column, {x, y},
                {x + s.cell_width - px(3), y + s.cell_height});
    }
    ImGui::PopID();
    fast_forward_bracket(row, {at.x, y}, s);
    if (row.n_proved > 0)
      list->AddText(nullptr, px(13), {end + px(4), y + px(4)}, colour(theme().dim),
                    fmt::format("+{}", row.n_proved).c_str());
  }
  grid_stairs(grid, at, s);
  for (std::size_t r = 0; r < grid.rows.size(); ++r)
    label_at_left_edge(fmt::format("{}", grid.rows[r].iteration),
                       {at.x, at.y + static_cast<float>(r) * s.row_height}, number);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({s.label + static_cast<float>(grid.n_columns + 1) * s.cell_width,
                static_cast<float>(grid.rows.size()) * s.row_height + px(6)});
  const int proved = grid.rows.empty() ? 0 : grid.rows.back().final_column;
  return at.x + s.label + static_cast<float>(proved) * s.cell_width;
}

}  // namespace ui

#include "ui/panels/live/difference.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/results/run_numbers.h"
#include "ui/prepare/sets/repeats.h"
#include "ui/prepare/status.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

std::vector<LaneFigures> figures_of(Context& context) {
  std::vector<LaneFigures> lanes;
  for (const engine::RunRecord* run : context.shown_runs()) {
    lanes.push_back(
        lane_figures(run_numbers(context, *run), *run, context.times(*run), context.n_steps(*run)));
    lanes.back().letter = std::string(1, context.letter_of(*run));
    if (const std::string* given = context.given_name(*run)) lanes.back().decoder = *given;
  }
  return lanes;
}

std::string why_no_difference(const Context& context) {
  return context.shown_runs().empty() ? "The figures of the lanes appear here side by side." : "";
}

// A row of a table with a column for each lane: a value, and below it smaller lines or nothing.
struct Cell {
  std::string value;
  std::vector<std::string> below = {};
};
struct Row {
  std::string label, help;
  Truth truth = Truth::Derived;
  std::vector<std::string> below = {};  // the names of the lines below the values
  std::vector<Cell> cells = {};         // [lanes]
};

// Returns the sum of the widths of the widest cells of all lanes.
float width_of_cells(const std::vector<Row>& rows, std::size_t n_lanes, float font_size) {
  float sum = 0;
  for (std::size_t lane = 0; lane < n_lanes; ++lane) {
    float widest = 0;
    for (const Row& row : rows) {
      ImGui::PushFont(fonts().bold, font_size);
      widest = std::max(widest, ImGui::CalcTextSize(row.cells[lane].value.c_str()).x);
      ImGui::PopFont();
      ImGui::PushFont(nullptr, kSmallSize);
      for (const std::string& line : row.cells[lane].below)
        widest = std::max(widest, ImGui::CalcTextSize(line.c_str()).x);
      ImGui::PopFont();
    }
    sum += widest;
  }
  return sum;
}

void right_aligned(const std::string& text, Rgb rgb) {
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() +
                                                            ImGui::GetContentRegionAvail().x -
                                                            ImGui::CalcTextSize(text.c_str()).x));
  words(text, rgb);
}

void draw_cell(const Cell& cell, float font_size) {
  ImGui::TableNextColumn();
  ImGui::PushFont(fonts().bold, font_size);
  right_aligned(cell.value, theme().bright);
  ImGui::PopFont();
  ImGui::PushFont(nullptr, kSmallSize);
  for (const std::string& line : cell.below) right_aligned(line, theme().dim);
  ImGui::PopFont();
}

void draw_table(const char* id,
                const std::vector<std::string>& letters,
                const std::vector<Row>& rows) {
  const auto n_lanes = letters.size();
  const auto n = static_cast<float>(n_lanes);
  // Many lanes have smaller figures; no figure is clipped.
  const float room = ImGui::GetContentRegionAvail().x - px(100) - px(12) * n;
  const bool is_tight = width_of_cells(rows, n_lanes, kTextSize) > room;
  const float size = is_tight ? kSmallSize : kTextSize;
  // If even these do not fit, the table scrolls sideways beside its labels.
  const bool scrolls = width_of_cells(rows, n_lanes, kSmallSize) > room + px(6) * n;
  const float line = ImGui::GetTextLineHeight() + px(3);
  float high = line + ImGui::GetStyle().ScrollbarSize;
  for (const Row& row : rows) high += line * static_cast<float>(1 + row.below.size());
  // Low rows, so that the sentence and the buttons below are visible without scrolling.
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(is_tight ? 3.0f : 6.0f), px(1.5f)));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 0));
  if (ImGui::BeginTable(id, static_cast<int>(n_lanes) + 1,
                        ImGuiTableFlags_BordersInnerH | (scrolls ? ImGuiTableFlags_ScrollX : 0),
                        {0, scrolls ? high : 0})) {
    if (scrolls)
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, px(88));
    else
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthStretch);
    if (scrolls) ImGui::TableSetupScrollFreeze(1, 0);
    for (std::size_t i = 0; i < n_lanes; ++i)
      ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    for (const std::string& letter : letters) {
      ImGui::TableNextColumn();
      right_aligned(letter, theme().dim);
    }
    for (const Row& row : rows) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      words(elided(row.label, ImGui::GetContentRegionAvail().x - px(14)), theme().dim);
      if (ImGui::IsItemHovered()) tooltip(fmt::format("{}: {}", row.label, row.help));
      truth_sign(row.truth);
      ImGui::PushFont(nullptr, kSmallSize);
      for (const std::string& name : row.below) words(name, theme().dim);
      ImGui::PopFont();
      for (const Cell& cell : row.cells) draw_cell(cell, size);
    }
    ImGui::EndTable();
  }
  ImGui::PopStyleVar(2);
  ImGui::Dummy({1, px(2)});
}

std::vector<Row> rows_of(const std::vector<LaneFigures>& lanes) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < kDifferenceRows.size(); ++i) {
    const DifferenceRow& of = kDifferenceRows[i];
    rows.push_back({of.label, of.formula, of.truth});
    for (const LaneFigures& lane : lanes) rows.back().cells.push_back({lane.values[i]});
  }
  return rows;
}

// The figures of the repeats of the lanes shown, computed once per change.
struct RepeatsOfLanes : PanelState {
  std::size_t n_ended = 0;          // runs that had ended then
  std::vector<engine::RunId> runs;  // empty: not computed yet
  std::vector<RepeatFigures> lanes;
  void document_changed() override { runs.clear(); }
};

const std::vector<RepeatFigures>& repeats_of_lanes(Context& context) {
  RepeatsOfLanes& all = context.states.get<RepeatsOfLanes>();
  std::vector<engine::RunId> runs;
  for (const engine::RunRecord* run : context.shown_runs()) runs.push_back(run->id());
  const std::size_t n = n_ended(context.timeline);
  if (all.n_ended == n && all.runs == runs) return all.lanes;
  all.n_ended = n, all.runs = std::move(runs), all.lanes.clear();
  for (const engine::RunRecord* run : context.shown_runs())
    all.lanes.push_back(repeat_figures(context.timeline, *run));
  return all.lanes;
}

// Draws the table of the repeats, if any lane is repeated.
void draw_repeats(Context& context, const std::vector<std::string>& letters) {
  const std::vector<RepeatFigures>& lanes = repeats_of_lanes(context);
  const auto is_repeated = [](const RepeatFigures& lane) { return lane.n_all > 1; };
  const auto first = std::ranges::find_if(lanes, is_repeated);
  if (first == lanes.end()) return;
  small_label(repeat_words(*first));
  std::vector<Row> rows;
  for (const RepeatFigures& lane : lanes) {
    const std::vector<Figure> figures = ui::figures_of(lane);
    const std::string machine = stolen_words(lane) + ", " + load_words(lane);
    const engine::Spread spreads[] = {lane.tokens_per_second, lane.step_ms, lane.tokens_per_step,
                                      lane.speedup};
    for (std::size_t i = 0; i < std::size(spreads); ++i) {
      if (rows.size() <= i)
        rows.push_back(
            {figures[i].label,
             fmt::format("{}\nStolen and load: {}", figures[i].formula, figures.back().formula),
             figures[i].truth,
             {"q1 to q3", "stolen, load"}});
      if (spreads[i].n == 0)
        rows[i].cells.push_back({"-", {"-", machine}});
      else
        rows[i].cells.push_back(
            {short_number(spreads[i].median),
             {fmt::format("{} to {}", short_number(spreads[i].q1), short_number(spreads[i].q3)),
              machine}});
    }
  }
  draw_table("repeats", letters, rows);
}

void draw_difference(Context& context) {
  const auto lanes = figures_of(context);
  std::vector<std::string> letters;
  for (const LaneFigures& lane : lanes) letters.push_back(lane.letter);
  const auto shown = context.shown_runs();
  const std::string place = shown.empty() ? "" : set_words(shown.front()->started.place);
  if (!place.empty()) small_label(place + ":");
  draw_table("difference", letters, rows_of(lanes));
  draw_repeats(context, letters);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().field));
  ImGui::BeginChild("how", {0, 0},
                    ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_AlwaysUseWindowPadding);
  wrapped(how_measured(context.timeline, shown), theme().dim);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  if (button("Export trace")) context.requests.export_trace = true;
  ImGui::SameLine();
  if (button("Copy table")) context.requests.copy = as_markdown(lanes);
}

void draw_difference_head(Context&) {
  panel_legend(kDifferencePanel);
}

}  // namespace

const Panel kDifferencePanel{
    .id = "difference",
    .title = "Difference",
    .empty = why_no_difference,
    .draw = draw_difference,
    .head = draw_difference_head,
    .help = "The figures of the lanes at the playhead. Hover a label for its formula.",
    .sketch = Sketch::Columns,
    .compare = Dock::FootRight};

}  // namespace ui

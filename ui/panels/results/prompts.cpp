#include "ui/panels/results/prompts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/results/prompt_scatter.h"
#include "ui/prepare/playhead.h"
#include "ui/prepare/status.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

using Show = PromptsView::Show;

constexpr ImGuiTableFlags kTable = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY |
                                   ImGuiTableFlags_ScrollX | ImGuiTableFlags_Sortable |
                                   ImGuiTableFlags_SortTristate | ImGuiTableFlags_SizingFixedFit |
                                   ImGuiTableFlags_NoSavedSettings;

struct Column {
  ResultColumn id;
  const char* name;
  bool descends;  // sorted from the highest value on at the first click
};
constexpr std::array<Column, 7> kPromptColumns{{{ResultColumn::Name, "prompt", false},
                                                {ResultColumn::Task, "task", false},
                                                {ResultColumn::Lane, "lane", false},
                                                {ResultColumn::Speedup, "speed-up", true},
                                                {ResultColumn::TokensPerStep, "tok/step", true},
                                                {ResultColumn::Acceptance, "accepted", true},
                                                {ResultColumn::Difference, "vs AR", true}}};
constexpr std::array<Column, 6> kTaskColumns{{{ResultColumn::Name, "task, prompts", false},
                                              {ResultColumn::Lane, "lane", false},
                                              {ResultColumn::Speedup, "speed-up", true},
                                              {ResultColumn::TokensPerStep, "tok/step", true},
                                              {ResultColumn::Acceptance, "accepted", true},
                                              {ResultColumn::Difference, "identical", true}}};

bool has_prompts(const engine::Timeline& timeline) {
  return listed_set(timeline, 0) != 0;
}

std::string why_no_prompts(const Context& context) {
  return has_prompts(context.timeline) ? ""
                                       : "Choose a prompt file in Setup and press Run race: the "
                                         "results of its prompts appear here.";
}

// Returns the view with the results up to date.
PromptsView& view_of(Context& context) {
  PromptsView& view = context.states.get<PromptsView>();
  const std::uint32_t set = listed_set(context.timeline, context.selection.race);
  std::size_t n_over = 0, n_compared = 0;
  for (const engine::RunRecord& run : context.timeline.runs())
    n_over += run.over(), n_compared += run.agreement.has_value();
  const bool is_new = view.set != set || view.n_over != n_over || view.n_compared != n_compared;
  if (!is_new) return view;
  view.set = set, view.n_over = n_over, view.n_compared = n_compared;
  view.prompts = prompt_results(context.timeline, set, view.speedups);
  view.tasks = task_results(view.prompts);
  view.sorted = view.prompts;
  view.sorted_tasks = view.tasks;
  view.prompts_stale = view.tasks_stale = true;
  return view;
}

std::string lane_words(int lane, const std::string& decoder) {
  return fmt::format("{} {}", static_cast<char>('A' + lane % 26), short_name(decoder));
}

// Shows the race of a prompt, with one of its lanes selected.
void show_race(Context& context, const PromptResult& row) {
  context.selection.race = row.race;
  context.selection.run = row.run;
  context.selection.compared.clear();
  context.selection.locked = {};
  context.playhead.mode = Playhead::Mode::Follow;
  context.show_whole_timeline();
}

template <class Columns>
void set_up(const Columns& columns) {
  ImGui::TableSetupScrollFreeze(1, 1);
  for (const Column& column : columns)
    ImGui::TableSetupColumn(
        column.name,
        column.descends ? ImGuiTableColumnFlags_PreferSortDescending : ImGuiTableColumnFlags_None,
        0, static_cast<ImGuiID>(column.id));
  ImGui::TableHeadersRow();
}

// Sorts the rows if the user chose another order or the rows are new.
// @param unsorted  the order without a chosen column
template <class Row>
void sort_rows(std::vector<Row>& rows, const std::vector<Row>& unsorted, bool are_new) {
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (!specs || (!specs->SpecsDirty && !are_new)) return;
  specs->SpecsDirty = false;
  rows = unsorted;
  if (specs->SpecsCount == 0) return;
  const ImGuiTableColumnSortSpecs& by = specs->Specs[0];
  sort_results(rows, static_cast<ResultColumn>(by.ColumnUserID),
               by.SortDirection == ImGuiSortDirection_Descending);
}

void next_cell(const std::string& text, Rgb rgb) {
  ImGui::TableNextColumn();
  words(text, rgb);
}

template <class Row>
void figure_cells(const Row& row) {
  next_cell(speedup_words(row), row.speedup ? theme().bright : theme().dim);
  const auto per_step = row.tokens_per_step();
  next_cell(per_step ? fmt::format("{:.2f}", *per_step) : "-", theme().text);
  next_cell(row.acceptance() ? percent(*row.acceptance()) : "-", theme().text);
}

void prompt_row(Context& context, const PromptResult& row, int index) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(index);
  const bool is_shown = context.selection.race == row.race && context.selection.run == row.run;
  if (selectable((row.prompt_id + "###prompt").c_str(), is_shown,
                 ImGuiSelectableFlags_SpanAllColumns))
    show_race(context, row);
  if (ImGui::IsItemHovered()) {
    const engine::RunRecord* run = context.timeline.run(row.run);
    tooltip("Click: show this race." + (run ? "\n" + run->started.prompt : "") +
            (row.speedup || row.why_no_speedup.empty() ? "" : "\n" + row.why_no_speedup));
  }
  ImGui::PopID();
  next_cell(row.task.empty() ? "-" : row.task, theme().dim);
  next_cell(lane_words(row.lane, row.decoder), theme().text);
  figure_cells(row);
  next_cell(row.decoder == "ar" ? "baseline" : difference_words(row),
            row.is_compared && row.first_difference >= 0 ? theme().bad : theme().dim);
}

void prompt_table(Context& context, PromptsView& view) {
  if (!ImGui::BeginTable("prompts", std::size(kPromptColumns), kTable)) return;
  set_up(kPromptColumns);
  sort_rows(view.sorted, view.prompts, std::exchange(view.prompts_stale, false));
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(view.sorted.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      prompt_row(context, view.sorted[static_cast<std::size_t>(i)], i);
  ImGui::EndTable();
}

void task_table(PromptsView& view) {
  if (!ImGui::BeginTable("tasks", std::size(kTaskColumns), kTable)) return;
  set_up(kTaskColumns);
  sort_rows(view.sorted_tasks, view.tasks, std::exchange(view.tasks_stale, false));
  for (const TaskResult& row : view.sorted_tasks) {
    ImGui::TableNextRow();
    next_cell(fmt::format("{}, {}", row.task.empty() ? "no task" : row.task, row.n_prompts),
              theme().text);
    next_cell(lane_words(row.lane, row.decoder), theme().text);
    figure_cells(row);
    next_cell(row.decoder == "ar" ? "baseline" : difference_words(row),
              row.n_identical < row.n_compared ? theme().bad : theme().dim);
  }
  ImGui::EndTable();
}

void draw_prompts(Context& context) {
  PromptsView& view = view_of(context);
  // Low rows with little space between the columns, so that a narrow panel has room for all.
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(5), ImGui::GetStyle().CellPadding.y));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(4), px(4)));
  if (view.show == Show::Tasks) task_table(view);
  if (view.show == Show::Prompts) prompt_table(context, view);
  ImGui::PopStyleVar(2);
  if (view.show != Show::Scatter) return;
  if (const auto row = draw_scatter(view.prompts, context.selection.run))
    show_race(context, view.prompts[*row]);
}

void draw_prompts_head(Context& context) {
  static constexpr std::array<const char*, 3> kShows{"by prompt", "by task", "scatter"};
  panel_legend(kPromptsPanel);
  ImGui::SameLine(0, px(12));
  auto& view = context.states.get<PromptsView>();
  int show = static_cast<int>(view.show);
  if (quiet_choice("##show", "", kShows, show)) view.show = static_cast<Show>(show);
}

}  // namespace

const Panel kPromptsPanel{
    .id = "prompts",
    .title = "Prompts",
    .empty = why_no_prompts,
    .draw = draw_prompts,
    .head = draw_prompts_head,
    .offered = has_prompts,
    .help =
        "The results of a set of prompts. Speed-ups are medians over the repeats of a prompt, "
        "and geometric means over the prompts of a task. Click a column to sort, a prompt to "
        "show its race; the scatter has a point for each prompt and lane.",
    .sketch = Sketch::Lines,
    .compare = Dock::Foot};

}  // namespace ui

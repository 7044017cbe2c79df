#include "ui/panels/live/trajectory.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/live/row_cell.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"
#include "ui/widgets/legend.h"

namespace ui {
namespace {

constexpr Mean kBlockLegend[] = {Mean::Guess, Mean::FastForward, Mean::Stationary, Mean::Accepted,
                                 Mean::Bonus};
constexpr Mean kWindowLegend[] = {Mean::Guess, Mean::Pool,     Mean::Accepted,
                                  Mean::Bonus, Mean::Rejected, Mean::Unused};

void draw_proved_line(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const float x = at.x + px(20);
  list->AddLine({x, at.y}, {x, at.y + px(kSampleHeight)}, colour(theme().bright), px(2));
}

void draw_hindsight_line(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const float x = at.x + px(20);
  for (float y = 0; y < px(kSampleHeight); y += px(5))
    list->AddLine({x, at.y + y}, {x, at.y + y + px(2)}, colour(look(Mean::Stationary).fill),
                  px(1.5f));
}

void draw_bracket(ImDrawList* list, ImVec2 at, const MarkNote&) {
  const ImU32 ink = colour(theme().bright);
  const float y = at.y + px(kSampleHeight) / 2, right = at.x + px(60);
  list->AddLine({at.x, y}, {right, y}, ink, px(1));
  list->AddLine({at.x, y - px(3)}, {at.x, y}, ink, px(1));
  list->AddLine({right, y - px(3)}, {right, y}, ink, px(1));
}

void draw_newly_final(ImDrawList* list, ImVec2 at, const MarkNote&) {
  list->AddText(nullptr, px(13), {at.x, at.y + px(4)}, colour(theme().dim), "+3");
}

void draw_unchanged(ImDrawList* list, ImVec2 at, const MarkNote&) {
  list->AddCircleFilled({at.x + px(20), at.y + px(kSampleHeight) / 2}, px(1.5f),
                        colour(theme().faint));
}

void draw_folded(ImDrawList* list, ImVec2 at, const MarkNote&) {
  list->AddText(nullptr, px(13), {at.x, at.y + px(4)}, colour(theme().dim), "+ block 3");
}

constexpr std::array kTrajectoryMarks{
    MarkNote{.words = "the tokens left of the line are proved final by agreement",
             .draw = draw_proved_line},
    MarkNote{.words = "the tokens left of the line are correct, as known in hindsight (h)",
             .draw = draw_hindsight_line},
    MarkNote{.words = "fast-forward: one iteration proved all these tokens final",
             .draw = draw_bracket},
    MarkNote{.words = "number of tokens that the iteration proved final", .draw = draw_newly_final},
    MarkNote{.words = "not changed by the iteration (with \"only changed\")",
             .draw = draw_unchanged},
    MarkNote{.words = "an earlier block: click to show or hide its iterations",
             .draw = draw_folded},
    cell_note(Mean::Guess),
    MarkNote{.words = "a guess that did not change for three iterations",
             .mean = Mean::Guess,
             .text = "guess",
             .mark = "?3"},
    cell_note(Mean::Stationary),
    cell_note(Mean::FastForward),
    cell_note(Mean::Accepted),
    cell_note(Mean::Bonus),
    cell_note(Mean::Pool),
    cell_note(Mean::Rejected),
    cell_note(Mean::Unused),
};

// Maximum number of iterations of a block, and of earlier blocks, that are shown.
constexpr std::size_t kMaxRows = 40, kMaxFolded = 24;

bool fits_trajectory(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.has_trajectory() || !traits.known;
}

const char* instead_of_trajectory(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.has_pool_or_guesses() ? "pool" : traits.drafts ? "tree" : "text";
}

std::string why_no_trajectory(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  const RunTraits traits = traits_of(run);
  const std::string method = method_of(context, run);
  if (!traits.known || run.steps.empty()) return "No step yet.";
  if (traits.has_trajectory()) return "";
  if (!traits.proposes()) return proposed_nothing(context, run) + ", so it has no trajectory.";
  return method +
         (traits.has_pool_or_guesses()
              ? " does not refine a block. The panel Pool shows its proposals."
              : " does not refine a block. The panel Tree shows the proposals of the draft model.");
}

GridCells cells_of(Context& context, const engine::RunRecord& run) {
  const auto place = [id = run.id()](const GridRow& row, int position) {
    return Place{id, row.step, position, -1};
  };
  GridCells cells{.text = [&context, &run](engine::TokenId token) {
    return cell_text(context.timeline, run, token);
  }};
  cells.where = [](const GridRow& row, int position) {
    return fmt::format("step {} \xC2\xB7 position {}", row.step, position);
  };
  cells.hovered = [&context, place](const GridRow& row, int position) {
    context.selection.hover(place(row, position));
  };
  cells.clicked = [&context, place](const GridRow& row, int position) {
    context.click(place(row, position));
  };
  cells.select = [&context, place](const GridRow& row, int position, CellFlags& flags) {
    const Place here = place(row, position), &locked = context.selection.locked;
    flags.lit = context.selection.lights_position(here.run, position);
    flags.locked = locked.run == here.run && locked.position == position && locked.step == row.step;
  };
  cells.marks = context.marks();
  return cells;
}

// Width of the labels of the window's rows, px at 100 %.
constexpr float kRowLabel = 66;

void draw_window(Context& context,
                 const engine::RunRecord& run,
                 const engine::StepRecord& step,
                 bool selected) {
  const WindowGrid grid = window_grid(step);
  int longest = 0;
  for (const engine::TokenId token : step.drafted.tree.token)
    longest = std::max(longest, n_columns(cell_text(context.timeline, run, token)));
  const float cell = column_width(longest) - px(3);
  const auto label = [](const std::string& text) {
    to_left_edge();
    small_label(text);
  };
  // Begins a row. Its label is drawn after the cells, which are scrolled under it.
  const auto begin_row = [] {
    const ImVec2 row = ImGui::GetCursorScreenPos();
    ImGui::Dummy({px(kRowLabel), 1});
    ImGui::SameLine(0, 0);
    return row;
  };
  const auto end_row = [](ImVec2 row, const char* name, std::size_t number) {
    ImGui::NewLine();
    label_at_left_edge(fmt::format("{} {}", name, number), row,
                       {px(kRowLabel) - px(4), ImGui::GetCursorScreenPos().y - row.y});
  };
  if (selected || !grid.row_of.empty())
    label(fmt::format("window at {}step {}: one row per level, one column per position{}",
                      selected ? "the selected " : "", step.begun.step,
                      selected ? " (Esc: back to the playhead)" : ""));
  for (std::size_t level = 0; level < grid.row_of.size(); ++level) {
    const ImVec2 begin = begin_row();
    for (std::size_t column = 0; column < grid.row_of[level].size(); ++column) {
      const int row = grid.row_of[level][column];
      if (row >= 0)
        row_cell(context, run, step, row, Mean::Guess, cell);
      else if (level == 0 && column == 0)  // column 0 begins with the last committed token
        row_cell(context, run, step, 0, Mean::Prefix, cell);
      else
        ImGui::Dummy({cell, px(23)});
      ImGui::SameLine(0, px(3));
    }
    end_row(begin, "level", level);
  }
  if (!grid.candidates.empty()) label("candidate n-grams and results");
  for (std::size_t n = 0; n < grid.candidates.size(); ++n) {
    const ImVec2 begin = begin_row();
    for (const int row : grid.candidates[n]) {
      row_cell(context, run, step, row, fate_of(step, row), cell);
      ImGui::SameLine(0, px(3));
    }
    end_row(begin, "guess", n + 1);
  }
  if (grid.row_of.empty() && grid.candidates.empty())
    wrapped("This step had no window yet, so it guessed no tokens.", theme().dim);
}

std::string left_out_words(const Grid& grid) {
  std::string text;
  if (grid.n_rows_left_out > 0)
    text = fmt::format("{} older iterations omitted", grid.n_rows_left_out);
  if (grid.n_rows_unchanged > 0)
    text += fmt::format("{}{} iterations without a change omitted",
                        text.empty() ? "" : " \xC2\xB7 ", grid.n_rows_unchanged);
  return text;
}

// Scrolls to the newest rows for two frames after the playhead has moved, because the size is known one frame late.
// @param frontier  screen x after the newest tokens that are proved final
void keep_newest_in_view(const engine::RunRecord& run, std::size_t n_steps, float frontier) {
  ImGuiStorage* kept = ImGui::GetStateStorage();
  const ImGuiID shown = ImGui::GetID("shown") + run.id();
  const ImGuiID frames_left = ImGui::GetID("frames");
  int n_frames = kept->GetInt(frames_left, 0);
  if (kept->GetInt(shown, -1) != static_cast<int>(n_steps)) n_frames = 2;
  kept->SetInt(shown, static_cast<int>(n_steps));
  kept->SetInt(frames_left, std::max(0, n_frames - 1));
  if (n_frames == 0) return;
  ImGui::SetScrollHereY(1);
  const float x = frontier - ImGui::GetWindowPos().x, wide = ImGui::GetWindowSize().x;
  if (x < wide * 0.15f || x > wide * 0.7f) ImGui::SetScrollFromPosX(x, 0.3f);
}

// Returns the screen x after the tokens that the last row has proved final.
float draw_block(Context& context, const engine::RunRecord& run, Grid& grid) {
  if (context.states.get<BlockGridView>().only_changed) only_changes(grid);
  if (const std::string left_out = left_out_words(grid); !left_out.empty()) {
    to_left_edge();
    small_label(left_out);
  }
  return draw_block_grid(grid, cells_of(context, run));
}

// Draws an earlier block as one row; a click shows or hides its iterations.
void folded_block(Context& context, const engine::RunRecord& run, const FoldedBlock& block) {
  ImGui::PushID(block.block);
  const std::pair key{run.id(), block.block};
  auto& unfolded = context.states.get<TrajectoryView>().unfolded;
  const bool open = unfolded.contains(key);
  to_left_edge();
  const ImVec2 at = ImGui::GetCursorPos();
  if (selectable("###fold", false, ImGuiSelectableFlags_AllowOverlap, {0, px(22)})) {
    if (open)
      unfolded.erase(key);
    else
      unfolded.insert(key);
  }
  if (ImGui::IsItemHovered())
    tooltip(open ? "Click: hide the iterations" : "Click: show the iterations");
  ImGui::SetCursorPos({at.x + px(2), at.y + px(2)});
  words(fmt::format("{} block {} \xC2\xB7 {} iterations \xC2\xB7 {} tokens", open ? "-" : "+",
                    block.block + 1, block.n_iterations, block.tokens.size()),
        theme().dim);
  ImGui::SameLine(0, px(14));
  ImGui::PushFont(fonts().mono, kMonoSize);
  std::string text = context.timeline.text_of(run, block.tokens);
  show_line_feeds(text);
  words(elided(text, room_in_view()), theme().text);
  ImGui::PopFont();
  ImGui::SetCursorPos({at.x - ImGui::GetScrollX(), at.y + px(26)});
  if (open) {
    Grid grid = trajectory_grid(run, block.n_steps, context.states.get<BlockGridView>().hindsight,
                                kMaxRows, block.block);
    draw_block(context, run, grid);
  }
  ImGui::PopID();
}

// Returns the number of fast-forwarded tokens, which agreement proves, and the metrics that are known only in hindsight.
std::string counted_words(const Grid& grid) {
  std::string text = fmt::format("fast-forwarded {} (proved)", grid.n_fast_forward);
  if (!grid.counts) return text + " \xC2\xB7 hindsight figures follow when the block is complete";
  return text + fmt::format(", {:.2f} per iteration (hindsight) \xC2\xB7 stationary {} (hindsight)",
                            grid.counts->fast_forward_mean, grid.counts->n_stationary);
}

// Draws the content and a legend below it. The legend stays at the lower edge of the panel while the content is scrolled under it, unless the
// panel has room for a few rows only.
void with_legend(std::span<const Mean> means, const std::function<void()>& content) {
  const ImGuiWindow* window = ImGui::GetCurrentWindow();
  const ImRect& view = window->InnerClipRect;
  const float lowest = window->InnerRect.Max.y - window->WindowPadding.y - px(kSampleHeight);
  const bool stays = lowest - view.Min.y > px(100);
  if (stays) ImGui::PushClipRect(view.Min, {view.Max.x, lowest - px(4)}, true);
  content();
  if (stays) ImGui::PopClipRect();
  ImGui::Dummy({1, px(4)});
  to_left_edge();
  const ImVec2 end = ImGui::GetCursorScreenPos();
  if (stays) ImGui::SetCursorScreenPos({end.x, std::min(end.y, lowest)});
  legend(means, false);
  // The content keeps its place for the legend.
  ImGui::SetCursorScreenPos(end);
  ImGui::Dummy({1, px(kSampleHeight)});
}

// Returns the screen x after the tokens that the last row has proved final.
float draw_blocks(Context& context, const engine::RunRecord& run, std::size_t n_steps, Grid& grid) {
  const FoldedBlocks older = older_blocks(run, n_steps, kMaxFolded);
  if (older.more_before) {
    to_left_edge();
    small_label("earlier blocks omitted");
  }
  for (const FoldedBlock& block : older.blocks) folded_block(context, run, block);
  const float frontier = draw_block(context, run, grid);
  to_left_edge();
  small_label(counted_words(grid));
  return frontier;
}

// Sets `at` to the selected step and returns true if the playhead (`n` steps) has passed that step and `at` is another one.
bool shows_selected(Context& context,
                    const engine::RunRecord& run,
                    std::size_t n,
                    std::size_t& at) {
  const Place& locked = context.selection.locked;
  if (locked.run != run.id() || locked.step < 0) return false;
  const std::size_t i = context.times(run).index_of(locked.step);
  if (i >= n || i == at) return false;
  at = i;
  return true;
}

void draw_trajectory(Context& context) {
  const engine::RunRecord& run = *context.run();
  const std::size_t n_steps = context.n_steps(run);
  Grid grid =
      trajectory_grid(run, n_steps, context.states.get<BlockGridView>().hindsight, kMaxRows);
  if (!grid.rows.empty()) {
    float frontier = 0;
    with_legend(kBlockLegend, [&] { frontier = draw_blocks(context, run, n_steps, grid); });
    keep_newest_in_view(run, n_steps, frontier);
    return;
  }
  std::size_t at = context.live(run) && n_steps < run.steps.size() ? n_steps : n_steps - 1;
  if (n_steps == 0 && at != 0) {
    empty_state("No step at the playhead.", Sketch::Staircase);
    return;
  }
  const bool selected = shows_selected(context, run, n_steps, at);
  const engine::StepRecord step = run.steps[at];
  const auto* gone = run.dropped_at(engine::PayloadKind::Trajectory, step.begun.step);
  if (gone && step.blocks.empty()) {
    empty_state(engine::describe(*gone), Sketch::Staircase);
    return;
  }
  with_legend(kWindowLegend, [&] { draw_window(context, run, step, selected); });
}

void draw_trajectory_head(Context& context) {
  auto& view = context.states.get<BlockGridView>();
  panel_legend(kTrajectoryPanel);
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words("proved final (solid)", theme().dim);
  if (ImGui::IsItemHovered())
    tooltip("Solid line: agreement has proved every token left of it final.");
  ImGui::SameLine();
  tick("correct in hindsight (h)", view.hindsight);
  if (ImGui::IsItemHovered())
    tooltip(
        "Dotted line: every token left of it is correct, as known after the block was complete.");
  ImGui::SameLine();
  // Lookahead's window moves with every step, so its rows cannot be compared with those above.
  const engine::RunRecord* run = context.run();
  const bool has_blocks = !run || !traits_of(*run).known || traits_of(*run).blocks;
  ImGui::BeginDisabled(!has_blocks);
  tick("only changed", view.only_changed);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(has_blocks
                ? "Tokens that an iteration did not change become dots."
                : "Lookahead's window moves with every step, so no cell keeps its position.");
}

}  // namespace

std::span<const MarkNote> trajectory_marks() {
  return kTrajectoryMarks;
}

const Panel kTrajectoryPanel{
    .id = "trajectory",
    .title = "Trajectory",
    .empty = why_no_trajectory,
    .draw = draw_trajectory,
    .head = draw_trajectory_head,
    .fits = fits_trajectory,
    .instead = instead_of_trajectory,
    .help = "The iterations of the block at the playhead, or Lookahead's window.",
    .marks = kTrajectoryMarks,
    .sketch = Sketch::Staircase,
    .wide = true,
    .names_run = true,
    .live = Dock::Centre};

}  // namespace ui

#include "ui/panels/live/trajectory.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/trace/describe.h"
#include "ui/widgets/draw.h"
#include "ui/shell/legend.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/live/row_cell.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/prepare/run_traits.h"
#include "ui/prepare/tokens/trajectory.h"

namespace ui {
namespace {

constexpr Mean kBlockLegend[] = {Mean::Accepted, Mean::Bonus, Mean::FastForward, Mean::Stationary,
                                 Mean::Guess};
constexpr Mean kWindowLegend[] = {Mean::Guess, Mean::Pool,     Mean::Accepted,
                                  Mean::Bonus, Mean::Rejected, Mean::Unused};

// Iterations of a block, and blocks before it, at most.
constexpr std::size_t kMaxRows = 40, kMaxFolded = 24;

bool fits_trajectory(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.settles() || !traits.told;
}

const char* instead_of_trajectory(const engine::RunRecord& run) {
  const RunTraits traits = traits_of(run);
  return traits.finds() ? "pool" : traits.drafts ? "tree" : "text";
}

std::string why_no_trajectory(const Context& context) {
  if (std::string none = no_run_yet(context); !none.empty()) return none;
  const engine::RunRecord& run = *context.run();
  const RunTraits traits = traits_of(run);
  const std::string method = method_of(context, run);
  if (!traits.told || run.steps.empty()) return "No step yet.";
  if (traits.settles()) return "";
  if (!traits.proposes()) return method + " has proposed nothing so far, so it has no trajectory.";
  return method + (traits.finds()
                       ? " refines no block. Its proposals are in the Pool panel."
                       : " refines no block: what a draft model proposes is in the Tree panel.");
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
  cells.marks = context.settings.marks;
  return cells;
}

void draw_window(Context& context,
                 const engine::RunRecord& run,
                 const engine::StepRecord& step,
                 bool selected) {
  const WindowGrid grid = window_grid(step);
  if (selected || !grid.row_of.empty())
    small_label(fmt::format("window at {}step {}: rows are levels, columns look ahead{}",
                            selected ? "the selected " : "", step.begun.step,
                            selected ? " (Esc: at the playhead)" : ""));
  for (std::size_t level = 0; level < grid.row_of.size(); ++level) {
    ImGui::AlignTextToFramePadding();
    words(fmt::format("level {}", level), theme().dim);
    ImGui::SameLine(px(76));
    for (std::size_t column = 0; column < grid.row_of[level].size(); ++column) {
      const int row = grid.row_of[level][column];
      if (row >= 0)
        row_cell(context, run, step, row, Mean::Guess, px(64));
      else if (level == 0 && column == 0)  // the text's last token heads the first column
        row_cell(context, run, step, 0, Mean::Prefix, px(64));
      else
        ImGui::Dummy({px(64), px(23)});
      ImGui::SameLine(0, px(3));
    }
    ImGui::NewLine();
  }
  if (!grid.candidates.empty()) small_label("n-grams under judgement, and their fate");
  for (std::size_t n = 0; n < grid.candidates.size(); ++n) {
    ImGui::AlignTextToFramePadding();
    words(fmt::format("guess {}", n + 1), theme().dim);
    ImGui::SameLine(px(76));
    for (const int row : grid.candidates[n]) {
      row_cell(context, run, step, row, fate_of(step, row), px(64));
      ImGui::SameLine(0, px(3));
    }
    ImGui::NewLine();
  }
  if (grid.row_of.empty() && grid.candidates.empty())
    wrapped("This step had no window yet: nothing was guessed.", theme().dim);
}

std::string left_out_words(const Grid& grid) {
  std::string text;
  if (grid.n_rows_left_out > 0)
    text = fmt::format("{} older iterations left out", grid.n_rows_left_out);
  if (grid.n_rows_unchanged > 0)
    text += fmt::format("{}{} iterations that changed nothing left out",
                        text.empty() ? "" : " \xC2\xB7 ", grid.n_rows_unchanged);
  return text;
}

// The newest rows stay in view whenever the playhead has moved; in between one may scroll. Twice,
// because the height is known a frame later.
void keep_newest_in_view(const engine::RunRecord& run, std::size_t n_steps) {
  ImGuiStorage* kept = ImGui::GetStateStorage();
  const ImGuiID shown = ImGui::GetID("shown") + run.id();
  const ImGuiID frames_left = ImGui::GetID("frames");
  int n_frames = kept->GetInt(frames_left, 0);
  if (kept->GetInt(shown, -1) != static_cast<int>(n_steps)) n_frames = 2;
  kept->SetInt(shown, static_cast<int>(n_steps));
  kept->SetInt(frames_left, std::max(0, n_frames - 1));
  if (n_frames == 0) return;
  ImGui::SetScrollHereY(1);
}

void draw_block(Context& context, const engine::RunRecord& run, Grid& grid) {
  if (context.view.only_changed) only_changes(grid);
  if (const std::string left_out = left_out_words(grid); !left_out.empty()) small_label(left_out);
  draw_block_grid(grid, cells_of(context, run));
}

// A block that is done with, as one row; a click unfolds it and folds it again.
void folded_block(Context& context, const engine::RunRecord& run, const FoldedBlock& block) {
  ImGui::PushID(block.block);
  const std::pair key{run.id(), block.block};
  const bool open = context.view.unfolded.contains(key);
  const ImVec2 at = ImGui::GetCursorPos();
  if (ImGui::Selectable("###fold", false, ImGuiSelectableFlags_AllowOverlap, {0, px(22)})) {
    if (open)
      context.view.unfolded.erase(key);
    else
      context.view.unfolded.insert(key);
  }
  if (ImGui::IsItemHovered())
    tooltip(open ? "Click: fold these iterations again" : "Click: show its iterations");
  ImGui::SetCursorPos({at.x + px(2), at.y + px(2)});
  words(fmt::format("{} block {} \xC2\xB7 {} iterations \xC2\xB7 {} tokens", open ? "-" : "+",
                    block.block + 1, block.n_iterations, block.tokens.size()),
        theme().dim);
  ImGui::SameLine(0, px(14));
  ImGui::PushFont(fonts().mono, kMonoSize);
  std::string text = context.timeline.text_of(run, block.tokens);
  show_line_feeds(text);
  words(elided(text, ImGui::GetContentRegionAvail().x), theme().text);
  ImGui::PopFont();
  ImGui::SetCursorPos({at.x, at.y + px(26)});
  if (open) {
    Grid grid = trajectory_grid(run, block.n_steps, context.view.hindsight, kMaxRows, block.block);
    draw_block(context, run, grid);
  }
  ImGui::PopID();
}

// By both clocks: what agreement proved at the time, and what metrics count in hindsight.
std::string counted_words(const Grid& grid) {
  std::string text = fmt::format("fast-forwarded {} (proved)", grid.n_fast_forward);
  if (!grid.counts) return text + " \xC2\xB7 in hindsight: of a whole block alone";
  return text + fmt::format(", {:.2f} an iteration (hindsight) \xC2\xB7 stationary {} (hindsight)",
                            grid.counts->fast_forward_mean, grid.counts->n_stationary);
}

void draw_blocks(Context& context, const engine::RunRecord& run, std::size_t n_steps, Grid& grid) {
  const FoldedBlocks older = older_blocks(run, n_steps, kMaxFolded);
  if (older.more_before) small_label("earlier blocks are left out");
  for (const FoldedBlock& block : older.blocks) folded_block(context, run, block);
  draw_block(context, run, grid);
  small_label(counted_words(grid));
  ImGui::Dummy({1, px(4)});
  legend(kBlockLegend, false);
  keep_newest_in_view(run, n_steps);
}

// A step that was clicked goes before the one at the playhead, once the playhead has passed it.
bool shows_selected(Context& context,
                    const engine::RunRecord& run,
                    std::size_t n,
                    std::size_t& at) {
  const Place& locked = context.selection.locked;
  if (locked.run != run.id() || locked.step < 0) return false;
  const std::size_t i = context.prepared.times(run).index_of(locked.step);
  if (i >= n || i == at) return false;
  at = i;
  return true;
}

void draw_trajectory(Context& context) {
  const engine::RunRecord& run = *context.run();
  const std::size_t n_steps = context.n_steps(run);
  Grid grid = trajectory_grid(run, n_steps, context.view.hindsight, kMaxRows);
  if (!grid.rows.empty()) return draw_blocks(context, run, n_steps, grid);
  std::size_t at = context.live(run) && n_steps < run.steps.size() ? n_steps : n_steps - 1;
  if (n_steps == 0 && at != 0) {
    empty_state("No step at the playhead.", true);
    return;
  }
  const bool selected = shows_selected(context, run, n_steps, at);
  const engine::StepRecord step = run.steps[at];
  const auto* gone = run.dropped_at(engine::PayloadKind::Trajectory, step.begun.step);
  if (gone && step.blocks.empty()) {
    empty_state(engine::describe(*gone), true);
    return;
  }
  draw_window(context, run, step, selected);
  ImGui::Dummy({1, px(4)});
  legend(kWindowLegend, false);
}

void draw_trajectory_head(Context& context) {
  legend_word("?###marks_trajectory", trajectory_marks());
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  words("proved final (solid)", theme().dim);
  if (ImGui::IsItemHovered())
    tooltip("The solid line: left of it agreement has proved every token final.");
  ImGui::SameLine();
  ImGui::Checkbox("right in hindsight (h)", &context.view.hindsight);
  if (ImGui::IsItemHovered())
    tooltip(
        "The dotted line: left of it every token is right, as was seen once the block was done.");
  ImGui::SameLine();
  // A window moves on with every step: there is no row above to compare with.
  const engine::RunRecord* run = context.run();
  const bool has_blocks = !run || !traits_of(*run).told || traits_of(*run).blocks;
  ImGui::BeginDisabled(!has_blocks);
  ImGui::Checkbox("only changed", &context.view.only_changed);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    tooltip(has_blocks ? "cells that an iteration left as they were become dots"
                       : "A window moves on with every step: nothing stays in place.");
}

}  // namespace

const Panel kTrajectoryPanel{.id = "trajectory",
                             .title = "Trajectory",
                             .empty = why_no_trajectory,
                             .draw = draw_trajectory,
                             .head = draw_trajectory_head,
                             .fits = fits_trajectory,
                             .instead = instead_of_trajectory,
                             .wide = true};

}  // namespace ui

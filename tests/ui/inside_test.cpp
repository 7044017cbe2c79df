// Details of decoders: results of a step's candidates, sources of n-grams, finished blocks, the bars of the
// text. Also the effects of clicks, which are the same in every panel.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "tests/ui/support/chart_mouse.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/live/trajectory.h"
#include "ui/panels/step/pool.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/tokens/line_feeds.h"
#include "ui/prepare/tokens/pool.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/prepare/tokens/trajectory.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace {

using namespace scripted;
using engine::PoolNgram;
using engine::RowFate;
using engine::RowTag;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using ui::Mean;

// Returns a step with three candidates after token 5: {7, 8, 9} of which two are accepted, {7, 4} that shares the
// first, and {6}, which is rejected.
engine::StepRecord step_with_candidates() {
  engine::StepRecord step;
  constexpr auto kGuess = RowTag::Kind::Guess;
  step.drafted.tree.token = {5, 7, 8, 9, 4, 6};
  step.drafted.tree.parent = {-1, 0, 1, 2, 1, 0};
  step.drafted.tree.tag = {
      {}, {kGuess, 0, 0}, {kGuess, 0, 1}, {kGuess, 0, 2}, {kGuess, 1, 1}, {kGuess, 2, 0}};
  step.verified.fate = {RowFate::Context,  RowFate::Accepted, RowFate::Accepted,
                        RowFate::Rejected, RowFate::Unused,   RowFate::Rejected};
  step.pool =
      engine::PoolChanged{.tried = {{.first = 5, .rest = {7, 8, 9}, .n_hits = 3, .n_tries = 9},
                                    {.first = 5, .rest = {7, 4}, .n_hits = 9, .n_tries = 9},
                                    {.first = 5, .rest = {6}, .n_hits = 9, .n_tries = 9},
                                    {.first = 5, .rest = {1}}}};
  return step;
}

TEST(Pool, candidates_have_the_results_of_their_step) {
  const engine::StepRecord step = step_with_candidates();
  const std::vector<ui::PoolCandidate> all = ui::candidates_of(step);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[0].rows, ElementsAre(1, 2, 3));
  EXPECT_EQ(all[0].n_accepted, 2);
  EXPECT_THAT(all[1].rows, ElementsAre(1, 4)) << "it shares the row of its first token";
  EXPECT_EQ(all[1].n_accepted, 1);
  // The hits of an n-gram over the run do not count as its result at this step.
  EXPECT_THAT(all[2].rows, ElementsAre(5));
  EXPECT_EQ(all[2].n_accepted, 0);
  EXPECT_THAT(all[3].rows, IsEmpty()) << "it has no row";
  EXPECT_EQ(ui::fate_of(step, 2), Mean::Accepted);
  EXPECT_EQ(ui::fate_of(step, 3), Mean::Rejected);
  EXPECT_EQ(ui::fate_of(step, 4), Mean::Unused);
}

engine::RunRecord run_of_pool_changes(const std::vector<engine::PoolChanged>& changes) {
  engine::RunRecord run;
  run.started.run = 1;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    engine::StepRecord step;
    step.begun.step = static_cast<engine::StepId>(i);
    step.complete = true;
    step.pool = changes[i];
    step.pool->step = step.begun.step;
    run.steps.push_back(step);
  }
  return run;
}

TEST(Pool, entries_have_last_try_and_last_hit) {
  const auto tried = [](std::uint32_t n_hits, std::uint32_t n_tries) {
    return engine::PoolChanged{
        .tried = {{.first = 5, .rest = {7}, .n_hits = n_hits, .n_tries = n_tries}}};
  };
  const engine::RunRecord run = run_of_pool_changes(
      {{.added = {{.first = 5, .rest = {7}}}}, tried(0, 1), tried(1, 2), tried(1, 3)});
  ui::PoolState pool;
  const auto entry = [&](std::size_t n_steps) {
    advance(pool, run, n_steps);
    return pool.entries.begin()->second;
  };
  EXPECT_EQ(entry(2).last_tried, 1);
  EXPECT_EQ(entry(2).last_hit, -1) << "tried without a hit";
  EXPECT_EQ(entry(3).last_hit, 2);
  EXPECT_EQ(entry(4).last_tried, 3);
  EXPECT_EQ(entry(4).last_hit, 2);
}

TEST(Pool, a_step_without_candidates_has_a_reason_and_the_last_hit) {
  engine::RunRecord run;
  run.started.run = 1;
  const auto add = [&run](engine::StepRecord step, std::vector<PoolNgram> added) {
    step.begun.step = static_cast<engine::StepId>(run.steps.size());
    step.complete = step.has_drafted = step.has_verified = true;
    if (!step.pool) step.pool.emplace();
    step.pool->step = step.begun.step;
    step.pool->added = std::move(added);
    run.steps.push_back(step);
  };
  const auto after = [](engine::TokenId token) {
    engine::StepRecord step;
    step.drafted.tree.token = {token};
    step.drafted.tree.parent = {-1};
    step.drafted.tree.tag = {{}};
    return step;
  };
  add(after(5), {{.first = 5, .rest = {7, 8, 9}}});
  engine::StepRecord hit = step_with_candidates();
  hit.verified.n_accepted = 2;
  add(hit, {{.first = 9, .rest = {1}, .born = 1}});
  add(after(4), {{.first = 4, .rest = {5}, .born = 2}, {.first = 4, .rest = {6}, .born = 2}});
  add(after(9), {});
  ui::PoolState pool;
  advance(pool, run, 4);
  const ui::PoolWithoutCandidates first = pool_without_candidates(pool, run, 0, "x");
  EXPECT_EQ(first.why, "The pool was empty before this step.");
  EXPECT_EQ(first.added.size(), 1u);
  EXPECT_EQ(first.hit_step, -1);
  const ui::PoolWithoutCandidates third = pool_without_candidates(pool, run, 2, "x");
  EXPECT_EQ(third.why, "No n-gram of the pool began with \"x\", the last token.")
      << "those that the step itself adds come too late";
  EXPECT_EQ(third.added.size(), 2u);
  EXPECT_EQ(third.hit_step, 1);
  EXPECT_EQ(third.hit.n_accepted, 2);
  EXPECT_THAT(third.hit.ngram.rest, ElementsAre(7, 8, 9));
  EXPECT_THAT(pool_without_candidates(pool, run, 3, "x").why, HasSubstr("verified none"));
}

TEST(Pool, jumps_give_the_same_entries_as_a_replay_from_the_start) {
  std::vector<engine::PoolChanged> changes;
  for (int i = 0; i < 6'000; ++i) {
    engine::PoolChanged change{.added = {{.first = i % 97, .rest = {i}, .born = i}}};
    if (i >= 50) change.evicted = {{.first = (i - 50) % 97, .rest = {i - 50}}};
    if (i >= 10)
      change.tried = {{.first = (i - 9) % 97, .rest = {i - 9}, .n_hits = 1, .n_tries = 2}};
    changes.push_back(std::move(change));
  }
  const engine::RunRecord run = run_of_pool_changes(changes);
  ui::PoolState jumping;
  advance(jumping, run, 1);
  jumping.most_saved_bytes = 40'000;  // some twenty copies of 50 entries
  for (const std::size_t n_steps :
       {6'000u, 5'999u, 300u, 256u, 255u, 0u, 1u, 4'097u, 4'095u, 2'600u, 6'000u, 5'632u}) {
    advance(jumping, run, n_steps);
    ui::PoolState replayed;
    advance(replayed, run, n_steps);
    ASSERT_EQ(jumping.n_steps, n_steps);
    ASSERT_EQ(jumping.entries.size(), replayed.entries.size()) << n_steps;
    for (const auto& [key, entry] : replayed.entries) {
      const auto found = jumping.entries.find(key);
      ASSERT_NE(found, jumping.entries.end()) << n_steps;
      EXPECT_EQ(found->second.ngram.rest, entry.ngram.rest) << n_steps;
      EXPECT_EQ(found->second.ngram.born, entry.ngram.born) << n_steps;
      EXPECT_EQ(found->second.ngram.n_hits, entry.ngram.n_hits) << n_steps;
      EXPECT_EQ(found->second.ngram.n_tries, entry.ngram.n_tries) << n_steps;
      EXPECT_EQ(found->second.last_tried, entry.last_tried) << n_steps;
      EXPECT_EQ(found->second.last_hit, entry.last_hit) << n_steps;
    }
  }
  EXPECT_LE(jumping.saved_bytes, jumping.most_saved_bytes);
  EXPECT_GT(jumping.saved.size(), 8u);
  EXPECT_GT(jumping.saved_every, ui::PoolState{}.saved_every) << "no copy was dropped";
}

TEST(Pool, counts_entries_by_first_token) {
  const engine::RunRecord run = run_of_pool_changes(
      {{.added = {
            {.first = 5, .rest = {7}}, {.first = 5, .rest = {8}}, {.first = 6, .rest = {7}}}}});
  ui::PoolState pool;
  advance(pool, run, 1);
  const auto text = [](const PoolNgram& n) { return std::to_string(n.rest.front()); };
  EXPECT_EQ(rows_in_view(pool, ui::PoolOrder::First, "", text, 9).n_by_first.at(5), 2);
  // Only entries that match the filter are counted.
  EXPECT_EQ(rows_in_view(pool, ui::PoolOrder::First, "8", text, 9).n_by_first.at(5), 1);
}

// Returns a step with a window of three columns and two levels in Lookahead's format: the first column begins with the last
// token of the prefix.
engine::StepRecord step_with_window() {
  engine::StepRecord step;
  constexpr auto kWindow = RowTag::Kind::Window;
  step.begun.step = 4;
  step.drafted.tree.token = {5, 11, 12, 20, 21, 22};
  step.drafted.tree.parent = {-1, 0, 1, 0, 1, 2};
  step.drafted.tree.tag = {
      {}, {kWindow, 0, 1}, {kWindow, 0, 2}, {kWindow, 1, 0}, {kWindow, 1, 1}, {kWindow, 1, 2}};
  step.verified.fate.assign(6, RowFate::Window);
  step.verified.picked = {1, 2, 3, 30, 31, 32};
  return step;
}

TEST(Pool, ngram_has_its_source_column) {
  const engine::StepRecord step = step_with_window();
  EXPECT_THAT(ui::source_rows(step, {.first = 11, .rest = {21, 31}}), ElementsAre(1, 4));
  EXPECT_THAT(ui::source_rows(step, {.first = 5, .rest = {20, 30}}), ElementsAre(0, 3));
  EXPECT_THAT(ui::source_rows(step, {.first = 11, .rest = {21, 32}}), IsEmpty());
  EXPECT_THAT(ui::source_rows(step, {.first = 11, .rest = {21}}), IsEmpty());
}

TEST(Selection, lights_all_selected_rows) {
  ui::Selection selection;
  selection.choose({{1, 4, -1, 1}, {1, 4, -1, 4}}, {1, 4, -1, 4});
  EXPECT_TRUE(selection.lights_row(1, 4, 1));
  EXPECT_TRUE(selection.lights_row(1, 4, 4));
  EXPECT_FALSE(selection.lights_row(1, 4, 2));
  EXPECT_FALSE(selection.lights_row(1, 5, 1)) << "of another step";
  selection.hover({1, 4, -1, 2});
  selection.begin_frame();
  EXPECT_TRUE(selection.lights_row(1, 4, 2));
  EXPECT_FALSE(selection.lights_row(1, 4, 1));
}

TEST(Pool, click_shows_the_source_cells_in_trajectory) {
  play("birth", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live.decoder = "lookahead";
    run_to_the_end(ctx, stage);
    shell.state<ui::PoolView>().order = ui::PoolOrder::Newest;
    ctx->WindowFocus("Pool###live.pool");
    ctx->Yield(3);
    ctx->ItemClick("//Pool###live.pool/**/###ngram");
    ctx->Yield(2);
    const engine::StepId born = shell.selection().locked.step;
    IM_CHECK_GE(born, 0);
    // The Trajectory draws the window of the selected step, not of the playhead.
    const engine::StepId earlier = born / 2;
    IM_CHECK_LT(earlier, born);
    const auto window =
        ui::window_grid(run_of(stage)->steps[static_cast<std::size_t>(earlier)]).row_of;
    ctx->WindowFocus("Trajectory###live.trajectory");
    const Points lit =
        lit_by(ctx, stage, "Trajectory###live.trajectory", {1, earlier, -1, window[1][2]});
    IM_CHECK_GE(lit.size(), std::size_t{4});
    // A double click also shows the panel.
    ctx->WindowFocus("Pool###live.pool");
    ctx->Yield(3);
    ctx->ItemDoubleClick("//Pool###live.pool/**/###ngram");
    ctx->Yield(3);
    const ImGuiWindow* trajectory = ImGui::FindWindowByName("Trajectory###live.trajectory");
    IM_CHECK(trajectory->DockTabIsVisible);
  });
}

// A click on an n-gram selects the step that added it, so the rows of the table must not move between the clicks of a double click.
TEST(Pool, candidates_follow_the_selection_and_rows_stay) {
  std::vector<engine::Event> events = streams::one_run("lookahead");
  for (engine::Event& event : events)
    if (auto* pool = std::get_if<engine::PoolChanged>(&event); pool && pool->step == 3)
      pool->tried = std::vector<PoolNgram>(3, pool->tried.at(0));
  DrawnWindow window;
  window.shell.take(std::move(events));
  window.shell.show(ui::Screen::Live);
  window.said();
  ImGui::SetWindowFocus("Pool###live.pool");
  const auto table_top = [] {
    for (const ImGuiWindow* drawn : ImGui::GetCurrentContext()->Windows)
      if (drawn->WasActive && std::string_view(drawn->Name).find("/pool_") != std::string::npos)
        return drawn->Pos.y;
    return -1.0f;
  };
  EXPECT_THAT(window.said(),
              AllOf(HasSubstr("candidates and results of step"), Not(HasSubstr("selected step"))));
  const float top = table_top();
  EXPECT_GT(top, 0);
  for (const auto& [step, n_candidates] : {std::pair(3, 3), std::pair(0, 0), std::pair(4, 1)}) {
    window.shell.selection().click({1, step, -1, -1});
    EXPECT_THAT(window.said(),
                HasSubstr(fmt::format("candidates and results of the selected step {} (Esc: back "
                                      "to the playhead): {}",
                                      step, n_candidates)));
    EXPECT_EQ(table_top(), top) << "step " << step;
    EXPECT_EQ(window.said().find("The pool was empty before this step. added at this step: 1") !=
                  std::string::npos,
              n_candidates == 0);
  }
}

TEST(Selection, a_token_lights_the_row_that_proposed_it) {
  play("token_lights_row", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live = ui::lane_with(shell.catalog(), "speculative");
    run_to_the_end(ctx, stage);
    const auto& tokens = run_of(stage)->tokens;
    const auto token =
        std::ranges::find(tokens, engine::TokenStatus::Accepted, &engine::TokenRecord::status);
    IM_CHECK(token != tokens.end());
    for (const char* panel : {"Mask###live.mask", "Tree###live.tree"}) {
      ctx->WindowFocus((std::string("//") + panel).c_str());
      ctx->Yield(3);
      const std::size_t of_step = lit_by(ctx, stage, panel, {1, token->step, -1, -1}).size();
      const std::size_t of_token =
          lit_by(ctx, stage, panel, {1, token->step, token->pos, -1}).size();
      IM_CHECK_GE(of_token, of_step + 4);
    }
  });
}

TEST(Trajectory, finished_blocks_fold_to_one_row) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const engine::RunRecord& run = *timeline.run(1);
  const std::size_t n = run.steps.size();
  const ui::FoldedBlocks folded = ui::older_blocks(run, n, 100);
  const ui::Grid last = ui::trajectory_grid(run, n, true);
  ASSERT_EQ(folded.blocks.size(), static_cast<std::size_t>(last.rows.front().block));
  EXPECT_FALSE(folded.more_before);
  std::size_t n_iterations = last.rows.size();
  int position = run.first_generated();
  for (const ui::FoldedBlock& block : folded.blocks) {
    const ui::Grid grid = ui::trajectory_grid(run, block.n_steps, true, 40, block.block);
    EXPECT_EQ(grid.rows.size(), static_cast<std::size_t>(block.n_iterations));
    EXPECT_EQ(grid.rows.back().block, block.block);
    EXPECT_EQ(block.first_position, position);
    // The final state of the block: the committed tokens.
    for (std::size_t i = 0; i < block.tokens.size(); ++i)
      EXPECT_EQ(block.tokens[i], run.tokens[static_cast<std::size_t>(position) + i -
                                            static_cast<std::size_t>(run.first_generated())]
                                     .id);
    position += static_cast<int>(block.tokens.size());
    n_iterations += static_cast<std::size_t>(block.n_iterations);
  }
  EXPECT_EQ(n_iterations, n) << "every step of this run is one iteration";
  const ui::FoldedBlocks few = ui::older_blocks(run, n, 2);
  ASSERT_EQ(few.blocks.size(), 2u);
  EXPECT_TRUE(few.more_before);
  EXPECT_EQ(few.blocks.back().block, folded.blocks.back().block) << "the newest blocks are listed";
  EXPECT_TRUE(ui::older_blocks(run, 1, 100).blocks.empty());
}

TEST(Trajectory, click_unfolds_and_folds_a_block) {
  play("fold", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const char* panel = "Trajectory###live.trajectory";
    ctx->SetRef(ImGui::FindWindowByName(panel));
    const auto height = [&] { return ImGui::FindWindowByName(panel)->ContentSize.y; };
    put_mouse_away(ctx);
    const float folded = height();
    ctx->ItemClick("$$0/###fold");
    put_mouse_away(ctx);
    IM_CHECK(stage.shell->state<ui::TrajectoryView>().unfolded.contains({1, 0}));
    IM_CHECK_GT(height(), folded + 2 * ui::px(28));
    ctx->ItemClick("$$0/###fold");
    put_mouse_away(ctx);
    IM_CHECK_EQ(height(), folded);
  });
}

TEST(Trajectory, follows_the_proved_tokens_sideways) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.take(streams::one_run("fastcot", 60));
  shell.show(ui::Screen::Live);
  for (int i = 0; i < 3; ++i) gui.frame(shell);
  const char* name = "Trajectory###live.trajectory";
  ImGui::SetWindowFocus(name);
  for (int i = 0; i < 6; ++i) gui.frame(shell);
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  ASSERT_NE(window, nullptr);
  EXPECT_GT(window->ScrollMax.x, 200.0f);
  EXPECT_GT(window->Scroll.x, 100.0f);
  const auto timeline = timeline_of(streams::one_run("fastcot", 60));
  const engine::RunRecord& run = *timeline.run(1);
  const ui::Grid grid = ui::trajectory_grid(run, run.steps.size(), true);
  const float column = ui::px(window->StateStorage.GetFloat(ImHashStr("column", 0, window->ID)));
  EXPECT_GE(column, ui::px(66));
  const float x = window->DC.CursorStartPos.x + ui::px(34) +
                  static_cast<float>(grid.rows.back().final_column) * column;
  EXPECT_GT(x, window->InnerRect.Min.x);
  EXPECT_LT(x, window->InnerRect.Max.x);
}

TEST(Trajectory, legend_stays_when_it_is_scrolled_up) {
  DrawnWindow window;
  window.shell.take(streams::one_run("jacobi", 300));
  window.shell.show(ui::Screen::Live);
  const auto frames = [&] {
    for (int i = 0; i < 6; ++i) window.gui.frame(window.shell);
  };
  frames();
  const char* name = "Trajectory###live.trajectory";
  ImGui::SetWindowFocus(name);
  frames();
  ImGuiWindow* panel = ImGui::FindWindowByName(name);
  ASSERT_NE(panel, nullptr);
  ASSERT_GT(panel->ScrollMax.y, ui::px(60));
  // Returns the places of the characters of the legend; above it the rows end.
  const auto legend_at = [&](float scroll) {
    ImGui::SetScrollY(panel, std::floor(scroll));
    frames();
    EXPECT_EQ(panel->Scroll.y, std::floor(scroll));
    const float top =
        panel->InnerRect.Max.y - panel->WindowPadding.y - ui::px(ui::kSampleHeight) - 2;
    std::set<long> found;
    for (const glyphs::Glyph& glyph : glyphs::drawn()) {
      if (glyph.window != panel->Name || glyph.seen.Max.y <= top) continue;
      EXPECT_GT(glyph.seen.Min.y, top);
      found.insert(std::lround(glyph.box.Min.x));
    }
    return found;
  };
  const std::set<long> at_end = legend_at(panel->ScrollMax.y);
  EXPECT_GT(at_end.size(), 20u);
  EXPECT_EQ(legend_at(panel->ScrollMax.y / 2), at_end);
  EXPECT_EQ(legend_at(0), at_end);
}

TEST(Legend, has_the_same_room_in_a_window_that_is_scrolled_sideways) {
  headless::Headless gui;
  float room[2] = {};
  for (int frame = 0; frame < 4; ++frame)
    gui.said([&] {
      ImGui::SetNextWindowSize({300, 200});
      ImGui::Begin("wide", nullptr, ImGuiWindowFlags_HorizontalScrollbar);
      ImGui::Dummy({2000, 10});
      if (frame == 1) ImGui::SetScrollX(500);
      const float scrolled = ImGui::GetScrollX();
      ImGui::SetCursorPosX(ImGui::GetCursorPosX() + scrolled);
      room[scrolled > 0] = ui::room_in_view();
      ImGui::Dummy({1, 1});
      ImGui::End();
    });
  EXPECT_GT(room[0], 200);
  EXPECT_FLOAT_EQ(room[0], room[1]);
}

TEST(TextEdges, are_at_the_caret_and_around_the_open_block) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const engine::RunRecord& run = *timeline.run(1);
  EXPECT_EQ(ui::text_edges(run, 0, false).caret, run.first_generated());
  int n_open = 0, n_settled = 0;
  for (std::size_t n = 1; n < run.steps.size(); ++n) {
    const ui::TextEdges edges = ui::text_edges(run, n, false);
    const engine::BlockRefined block = run.steps[n - 1].blocks.back();
    // In this run every final token is committed.
    EXPECT_EQ(edges.caret, block.first_pos + block.n_final);
    EXPECT_EQ(edges.block_first, block.converged ? -1 : block.first_pos);
    const int last = block.first_pos + static_cast<int>(block.tokens.size()) - 1;
    EXPECT_EQ(edges.block_last, block.converged ? -1 : last);
    ++(block.converged ? n_settled : n_open);
  }
  EXPECT_GT(n_open, 0);
  EXPECT_GT(n_settled, 0);
  const ui::TextEdges end = ui::text_edges(run, run.steps.size(), false);
  EXPECT_EQ(end.caret, run.first_generated() + static_cast<int>(run.tokens.size()));
  EXPECT_EQ(end.block_first, -1);
}

TEST(TextCells, line_feeds_are_shown_as_pilcrows) {
  std::string text = "a\n\xE2\x90\x8A b";
  EXPECT_TRUE(ui::show_line_feeds(text));
  EXPECT_EQ(text, "a\xC2\xB6\xC2\xB6 b");
  EXPECT_FALSE(ui::show_line_feeds(text));
}

int corners_in(const char* window, ui::Rgb rgb) {
  const ImDrawList* list = ImGui::FindWindowByName(window)->DrawList;
  return static_cast<int>(std::count_if(list->VtxBuffer.begin(), list->VtxBuffer.end(),
                                        [&](auto& v) { return v.col == ui::colour(rgb); }));
}

TEST(TextEdges, caret_and_block_edges_are_drawn) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const ui::Catalog catalog = streams::catalog();
  ui::Shell shell(catalog, commands, "");
  shell.show(ui::Screen::Live);
  shell.take(streams::one_run("jacobi"));
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  const char* text = "Text###live.text";
  EXPECT_GE(corners_in(text, ui::theme().bright), 4) << "the caret of a finished text";
  const engine::RunRecord& run = *shell.session().shown().timeline.run(1);
  // In the next step the block is open; its bar has its own colour.
  const auto edge = ui::edge_on(ui::theme(), ui::look(Mean::Guess));
  std::size_t open = 1;
  while (run.steps[open - 1].blocks.back().converged) ++open;
  shell.playhead().go_to(static_cast<double>(run.steps[open].begun.compute), 1e18);
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  const int with = corners_in(text, edge);
  shell.settings().flowing_text = true;
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  EXPECT_GT(with, 0);
  EXPECT_GE(corners_in(text, ui::theme().bright), 4) << "flowing text has the caret too";
}

TEST(Selection, modifier_keys_decide_what_a_click_does) {
  const ui::Place a{1, 3, 40, -1}, b{1, 4, 41, -1}, c{1, 5, 42, -1};
  const std::vector<ui::Place> row{a, b, c};
  ui::Selection selection;
  selection.click(a);
  EXPECT_EQ(selection.locked, a);
  EXPECT_EQ(selection.run, 1u);
  selection.click(c, {.ctrl = true});
  EXPECT_EQ(selection.chosen().places().size(), 2u);
  selection.click(c, {.ctrl = true});
  EXPECT_FALSE(selection.several());
  selection.click(a);  // a second click unlocks it
  EXPECT_FALSE(selection.locked.valid());
  selection.click(a);
  EXPECT_EQ(selection.locked, a);
  selection.click(c, {.shift = true}, row);
  EXPECT_EQ(selection.chosen().places().size(), 3u);
  EXPECT_EQ(selection.locked, a) << "the first end of the range";
  selection.click(b, {.shift = true}, row);
  EXPECT_EQ(selection.chosen().places().size(), 2u);
  selection.click(c, {.shift = true});
  EXPECT_EQ(selection.locked, c) << "without an order there is no range";
  // A click on several places selects them; with Ctrl it adds them.
  selection.click_several({a, b}, "were first", {});
  EXPECT_EQ(selection.chosen().n_steps(), 2u);
  selection.click_several({b, c}, "were last", {.ctrl = true});
  EXPECT_EQ(selection.chosen().n_steps(), 3u);
  EXPECT_EQ(selection.chosen().why(), "were first or were last");
}

// Returns the middle of a step's slice in the target's lane.
ImVec2 slice_of(ImGuiTestContext* ctx, Stage& stage, engine::StepId step) {
  ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
  const ImRect lanes = ctx->ItemInfo("lanes").RectFull;
  const engine::RunRecord& run = *run_of(stage);
  const engine::StepRecord record = run.steps[static_cast<std::size_t>(step)];
  const auto& ended = record.ended;
  const double middle =
      static_cast<double>(record.begun.compute) +
      0.5 * static_cast<double>(ended.propose + ended.forward + ended.verify + ended.commit);
  const ui::TimeRange& view = stage.shell->state<ui::TimelineView>().range;
  const double end = static_cast<double>(run.decode_compute());
  const double t0 = view.t1 > view.t0 ? view.t0 : 0, t1 = view.t1 > view.t0 ? view.t1 : 1.05 * end;
  return {lanes.Min.x + lanes.GetWidth() * static_cast<float>((middle - t0) / (t1 - t0)),
          lanes.Min.y + ui::px(10)};
}

TEST(Choosing, ctrl_adds_slices_cells_and_bars) {
  play("ctrl_everywhere", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const auto n_steps = [&] { return shell.selection().chosen().n_steps(); };
    const auto click_slice = [&](engine::StepId step) {
      ctx->MouseMoveToPos(slice_of(ctx, stage, step));
      ctx->MouseClick();
      ctx->Yield(2);
    };
    click_slice(5);
    IM_CHECK_EQ(shell.selection().locked.step, 5);
    ctx->KeyDown(ImGuiMod_Ctrl);
    click_slice(9);
    ctx->KeyUp(ImGuiMod_Ctrl);
    IM_CHECK_EQ(n_steps(), std::size_t{2});
    // Ctrl+click on a column of a counter, which is one step wide.
    ctx->KeyDown(ImGuiMod_Ctrl);
    ctx->MouseMoveToPos(
        {slice_of(ctx, stage, 12).x, ctx->ItemInfo("rows/label").RectFull.GetCenter().y});
    ctx->MouseClick();
    ctx->KeyUp(ImGuiMod_Ctrl);
    ctx->Yield(2);
    IM_CHECK(shell.selection().chosen().has_step(1, 12, 12));
    ctx->KeyDown(ImGuiMod_Ctrl);
    ctx->MouseClick();
    ctx->KeyUp(ImGuiMod_Ctrl);
    ctx->Yield(2);
    IM_CHECK_EQ(n_steps(), std::size_t{2});
    // Ctrl+click on a cell of the last iteration in the Trajectory.
    put_mouse_away(ctx);
    ctx->SetRef(ImGui::FindWindowByName("Trajectory###live.trajectory"));
    ctx->KeyDown(ImGuiMod_Ctrl);
    ctx->ItemClick("$$0/$$0/cell");
    ctx->KeyUp(ImGuiMod_Ctrl);
    ctx->Yield(2);
    IM_CHECK_EQ(n_steps(), std::size_t{3});
    // Ctrl+click on a bar of the panel Numbers.
    ctx->SetRef(ImGui::FindWindowByName("Numbers###live.numbers"));
    move_to_x(ctx, "##tokens committed per step", 2);
    ctx->KeyDown(ImGuiMod_Ctrl);
    ctx->MouseClick();
    ctx->KeyUp(ImGuiMod_Ctrl);
    ctx->Yield(2);
    IM_CHECK_GT(n_steps(), std::size_t{3});
    IM_CHECK(shell.selection().lights_step(1, 5) || shell.selection().hovered.valid());
  });
}

TEST(Choosing, middle_click_zooms_to_the_slice) {
  play("middle_click", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    const ui::TimeRange& view = stage.shell->state<ui::TimelineView>().range;
    const ImVec2 at = slice_of(ctx, stage, 6);
    ctx->MouseMoveToPos(at);
    ctx->MouseClick(ImGuiMouseButton_Middle);
    ctx->Yield(3);
    const engine::StepRecord step = run_of(stage)->steps[6];
    const engine::StepEnded& e = step.ended;
    const double from = static_cast<double>(step.begun.compute);
    const double wide = static_cast<double>(e.propose + e.forward + e.verify + e.commit);
    IM_CHECK_LT(std::abs(view.t0 - (from - wide)), wide / 10);
    IM_CHECK_LT(std::abs(view.t1 - (from + 2 * wide)), wide / 10);
    IM_CHECK(!stage.shell->selection().locked.valid());
  });
}

// On a French keyboard the key at the position of a US W sends Z to Dear ImGui; it zooms the timeline. A key
// that sends W from another position does not.
TEST(Keys, timeline_keys_depend_on_position_not_letter) {
  play("physical_keys", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    auto* window = static_cast<GLFWwindow*>(ImGui::GetMainViewport()->PlatformHandle);
    IM_CHECK(window != nullptr);
    const GLFWkeyfun heard = glfwSetKeyCallback(window, nullptr);
    glfwSetKeyCallback(window, heard);
    IM_CHECK(heard != nullptr);
    const ui::TimeRange& view = stage.shell->state<ui::TimelineView>().range;
    const auto wide = [&] { return view.t1 - view.t0; };
    ctx->KeyDown(ImGuiKey_W);
    ctx->Yield(3);
    ctx->KeyUp(ImGuiKey_W);
    IM_CHECK_EQ(wide(), 0.0);  // everything is still shown
    heard(window, GLFW_KEY_W, 0, GLFW_PRESS, 0);
    ctx->Yield(3);
    IM_CHECK_GT(wide(), 0.0);
    heard(window, GLFW_KEY_W, 0, GLFW_RELEASE, 0);
    ctx->Yield(2);
    const double zoomed = wide();
    ctx->Yield(2);
    IM_CHECK_EQ(wide(), zoomed);
    // A key pressed and released between two frames moves the view for one frame.
    heard(window, GLFW_KEY_S, 0, GLFW_PRESS, 0);
    heard(window, GLFW_KEY_S, 0, GLFW_RELEASE, 0);
    ctx->Yield(2);
    IM_CHECK_GT(wide(), zoomed);
    const double from = view.t0;
    heard(window, GLFW_KEY_D, 0, GLFW_PRESS, 0);
    ctx->Yield(3);
    heard(window, GLFW_KEY_D, 0, GLFW_RELEASE, 0);
    IM_CHECK_GT(view.t0, from);
  });
}

}  // namespace

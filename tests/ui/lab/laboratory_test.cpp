// The screen Lab on bundled recordings: its figures, its controls, and its layout at several sizes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/simulated_schedule.h"
#include "engine/lab/acceptance.h"
#include "engine/lab/cost.h"
#include "tests/support/work_time.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/schedule_stream.h"
#include "tests/ui/support/waiting.h"
#include "ui/panels/lab/what_if.h"
#include "ui/panels/time/schedule.h"
#include "ui/shell/window.h"

namespace {

namespace fs = std::filesystem;
using namespace scripted;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kDraft = DECOSCOPE_SOURCE_DIR "/assets/lessons/2_draft_and_verify.pdrun";
const std::string kRejection = DECOSCOPE_SOURCE_DIR "/assets/lessons/3_why_nothing_is_lost.pdrun";
const std::string kLookahead = DECOSCOPE_SOURCE_DIR "/assets/lessons/6_lookahead.pdrun";

// Opens a recording on the screen Lab and selects a run.
void open_in_lab(DrawnWindow& window, const std::string& path, engine::RunId run) {
  window.shell.open(path);
  const auto is_read = [&] {
    const engine::RunRecord* found = window.shell.session().shown().timeline.run(run);
    return found && found->over();
  };
  ASSERT_TRUE(waiting::until(is_read, [&] { window.gui.frame(window.shell); }));
  window.shell.show(ui::Screen::Lab);
  window.gui.frame(window.shell);  // which chooses a run
  window.shell.selection().run = run;
}

const engine::RunRecord& run_in(DrawnWindow& window, engine::RunId id) {
  return *window.shell.session().shown().timeline.run(id);
}

void bring_forward(const std::string& panel) {
  const std::string name = ui::window_name(ui::Screen::Lab, panel.c_str(), "");
  const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
  ASSERT_NE(window, nullptr) << name;
  if (window->DockNode->TabBar) window->DockNode->TabBar->NextSelectedTabId = window->TabId;
}

TEST(Laboratory, acceptance_shows_the_computed_figures) {
  DrawnWindow window;
  open_in_lab(window, kDraft, 2);
  const engine::Timeline& timeline = window.shell.session().shown().timeline;
  const engine::Acceptance a = engine::acceptance_of(run_in(window, 2));
  const engine::SpeedAccount account = engine::speed_account(timeline, run_in(window, 2), a);
  ASSERT_GT(a.verified, 20);
  ASSERT_GT(account.measured, 1);
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr(fmt::format("accepted of verified d {}",
                                          ui::percent(double(a.accepted) / a.verified))));
  EXPECT_THAT(said, HasSubstr(fmt::format("acceptance rate d {}",
                                          ui::percent(double(a.accepted) / a.proposed))));
  EXPECT_THAT(said, HasSubstr(fmt::format("expected tokens / step d {:.2f}", a.expected)));
  EXPECT_THAT(said, HasSubstr(fmt::format("predicted speed-up d {:.2f}x", account.predicted)));
  EXPECT_THAT(said,
              HasSubstr(fmt::format("measured speed-up vs run 1 d {:.2f}x", account.measured)));
  EXPECT_THAT(said, HasSubstr(fmt::format("drafts | {:+.3f}", account.parts[1].ms)));
  EXPECT_THAT(said, HasSubstr(fmt::format("with committed tokens | | {:.2f}x",
                                          account.predicted * a.tokens_per_step() / a.expected)));
  EXPECT_THAT(said, HasSubstr("alpha = 1 - TV(p, q) d -"));
}

TEST(Laboratory, rejection_sampling_has_alpha) {
  DrawnWindow window;
  open_in_lab(window, kRejection, 1);
  const engine::Acceptance a = engine::acceptance_of(run_in(window, 1));
  EXPECT_EQ(a.alpha.n, a.verified) << "every proposal of a chain is drawn from q";
  EXPECT_GT(a.alpha.n_bounded, 5);
  EXPECT_LE(a.alpha.low(), a.alpha.high());
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr(fmt::format("alpha = 1 - TV(p, q) d {:.2f}", a.alpha.mean())));
  EXPECT_THAT(said, HasSubstr("No finished run of plain decoding is here for this prompt"));
}

TEST(Laboratory, tasks_have_shares_of_proposed_and_of_verified) {
  DrawnWindow window;
  std::vector<engine::Event> events = streams::race({"ar", "prompt-lookup"});
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event)) started->prompt_id = "arith/1";
  window.shell.take(events);
  window.shell.show(ui::Screen::Lab);
  window.gui.frame(window.shell);
  window.shell.selection().run = 2;
  const engine::RunTotals& totals = run_in(window, 2).totals;
  const auto verified = static_cast<double>(totals.n_accepted + totals.n_rejected);
  const auto accepted = static_cast<double>(totals.n_accepted);
  ASSERT_GT(totals.n_unused, 0) << "the two shares differ";
  EXPECT_THAT(window.said(),
              HasSubstr(fmt::format("| arith | 1 | {} | {} |",
                                    ui::percent(accepted / static_cast<double>(totals.n_proposed)),
                                    ui::percent(accepted / verified))));
}

TEST(Laboratory, lost_tokens_are_listed) {
  DrawnWindow window;
  open_in_lab(window, kDraft, 2);
  const auto lost = engine::lost_tokens(window.shell.session().shown().timeline, run_in(window, 2));
  ASSERT_FALSE(lost.empty());
  int n = 0;
  for (const engine::LostToken& token : lost) n += token.n;
  EXPECT_EQ(n, run_in(window, 2).totals.n_rejected) << "every rejection of a chain is listed";
  EXPECT_THAT(window.said(), HasSubstr(fmt::format("| \"{}\" | \"{}\" | \"{}\" | {} | {} |",
                                                   lost[0].proposed_text, lost[0].instead_text,
                                                   lost[0].context, lost[0].n, lost[0].n_unused)));
}

TEST(Laboratory, begins_with_a_run_of_the_race_that_has_proposals) {
  DrawnWindow window;
  const std::string race = DECOSCOPE_SOURCE_DIR "/assets/recordings/first_race.pdrun";
  ASSERT_NO_FATAL_FAILURE(open_in_lab(window, race, 1));
  ASSERT_EQ(run_in(window, 1).totals.n_proposed, 0);
  window.gui.frame(window.shell);
  EXPECT_EQ(window.shell.selection().run, 1u) << "the user's choice stays";
  window.shell.show(ui::Screen::Live);
  window.gui.frame(window.shell);
  window.shell.show(ui::Screen::Lab);
  window.gui.frame(window.shell);
  EXPECT_EQ(window.shell.selection().run, 2u);
  EXPECT_GT(run_in(window, 2).totals.n_proposed, 0);
}

TEST(Laboratory, runs_without_proposals_say_so) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Lab);
  EXPECT_THAT(window.said(), HasSubstr("No run yet."));
  open_in_lab(window, kDraft, 1);
  EXPECT_THAT(window.said(), HasSubstr("This run proposed no tokens."));
}

// Returns a run whose sizes were chosen from step 2 on.
std::vector<engine::Event> run_with_choices() {
  std::vector<engine::Event> events = streams::one_run("prompt-lookup");
  for (engine::Event& event : events)
    if (auto* drafted = std::get_if<engine::Drafted>(&event); drafted && drafted->step >= 2)
      drafted->decision = {.size = drafted->step % 5, .tokens = 1.5f, .ms = 5, .plain_ms = 4};
  return events;
}

TEST(Laboratory, decisions_are_charts_over_the_steps) {
  play("decisions", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take(run_with_choices());
    stage.shell->show(ui::Screen::Lab);
    ctx->Yield(4);
    const std::string panel = "//" + ui::window_name(ui::Screen::Lab, "decisions", "");
    ctx->WindowFocus(panel.c_str());
    ctx->Yield(4);
    ctx->SetRef(panel.c_str());
    const ImRect plot = ctx->ItemInfo("##ms").RectFull;
    IM_CHECK_GT(plot.GetHeight(), 60.0f);
    const engine::RunRecord* run = run_of(stage);
    ctx->MouseMoveToPos(plot.GetCenter());
    ctx->MouseClick();
    ctx->Yield(2);
    // The click moved the playhead to the step there.
    const double at = stage.shell->playhead().at;
    IM_CHECK(at > 0 && at < static_cast<double>(run->decode_compute()));
  });
}

TEST(Laboratory, runs_with_given_sizes_have_no_decisions) {
  DrawnWindow window;
  open_in_lab(window, kDraft, 2);
  window.said();
  bring_forward("decisions");
  EXPECT_THAT(window.said(), HasSubstr("The sizes of this run were fixed."));
}

// A simulator for the window alone: n branches take an nth of the time.
engine::SimulatedSchedule by_branches(const engine::Schedule& recorded,
                                      const engine::SimulatedStages& stages) {
  const engine::Nanoseconds in_turn = 8 * (stages.draft + stages.verify);
  return {.schedule = recorded, .end = in_turn / stages.n_branches, .in_turn = in_turn};
}

TEST(Laboratory, scheduled_runs_are_simulated) {
  ui::Catalog catalog = streams::catalog();
  catalog.simulate = by_branches;
  play(
      "branches",
      [&](ImGuiTestContext* ctx, Stage& stage) {
        stage.shell->take(streams::schedule(3, 3));
        stage.shell->show(ui::Screen::Lab);
        ctx->Yield(4);
        ctx->SetRef(("//" + ui::window_name(ui::Screen::Lab, "what_if", "")).c_str());
        ctx->ItemInputValue("##simulated_branches", 5);
        IM_CHECK_EQ(stage.shell->state<ui::ScheduleView>().simulation.n_branches, 5);
        const ImRect plot = ctx->ItemInfo("##branches").RectFull;
        ctx->MouseMoveToPos({plot.Min.x + plot.GetWidth() * 0.3f, plot.GetCenter().y});
        ctx->MouseClick();
        const int chosen = stage.shell->state<ui::ScheduleView>().simulation.n_branches;
        IM_CHECK(chosen >= 2 && chosen <= 4);
        ctx->ItemClick("###show_schedule");
        ctx->Yield(3);
        IM_CHECK(stage.shell->screen() == ui::Screen::Live);
        IM_CHECK(stage.shell->state<ui::ScheduleView>().simulation.on);
      },
      {}, catalog);
}

TEST(Laboratory, a_slider_changes_the_derived_speedup) {
  play("what_if", [&](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->open(kDraft);
    wait_until(ctx, [&] { return stage.shell->session().shown().timeline.runs().size() == 2; });
    ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_4);
    IM_CHECK(stage.shell->screen() == ui::Screen::Lab);
    stage.shell->selection().run = 2;
    ctx->Yield(4);
    ui::WhatIfView& view = stage.shell->state<ui::WhatIfView>();
    IM_CHECK_EQ(view.sizes.depth, 4);
    const std::string panel = ui::window_name(ui::Screen::Lab, "what_if", "");
    ctx->SetRef(ctx->WindowInfo(("//" + panel + "/controls").c_str()).ID);
    ctx->ItemInputValue("##depth", 9);
    IM_CHECK_EQ(view.sizes.depth, 9);
    ctx->ItemClick("###reset_sizes");
    IM_CHECK_EQ(view.sizes.depth, 4);
    // A click in the chart chooses the depth there.
    ctx->SetRef(ctx->WindowInfo(("//" + panel + "/chart").c_str()).ID);
    const ImRect plot = ctx->ItemInfo("##speedup").RectFull;
    ctx->MouseMoveToPos({plot.Min.x + plot.GetWidth() * 0.6f, plot.GetCenter().y});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(view.sizes.depth > 6 && view.sizes.depth < 14);
  });
}

// Returns the windows of the screen that cut a character at the left or the right.
std::set<std::string> cut_windows() {
  std::set<std::string> cut;
  for (const glyphs::Glyph& glyph : glyphs::drawn())
    if (is_cut_sideways(glyph)) cut.insert(glyph.window);
  return cut;
}

TEST(Laboratory, nothing_is_cut_at_several_sizes) {
  struct Size {
    float width, height;
    int scale;
  };
  for (const Size& size : {Size{1280, 720, 100}, Size{1280, 720, 150}, Size{1600, 1000, 100},
                           Size{2560, 1440, 200}, Size{640, 400, 100}}) {
    for (const std::string& path : {kDraft, kLookahead}) {
      for (const std::string panel : {"acceptance", "what_if", "decisions", "lost_tokens"}) {
        SCOPED_TRACE(fmt::format("{}x{} at {} %, {}, {}", size.width, size.height, size.scale,
                                 fs::path(path).filename().string(), panel));
        DrawnWindow window;
        ImGui::GetIO().DisplaySize = {size.width, size.height};
        window.shell.settings().scale_percent = size.scale;
        open_in_lab(window, path, 2);
        window.said();
        bring_forward(panel);
        for (int i = 0; i < 4; ++i) window.gui.frame(window.shell);
        EXPECT_THAT(cut_windows(), IsEmpty());
        EXPECT_THAT(glyphs::covering(glyphs::drawn()), IsEmpty());
      }
    }
  }
}

// Returns the processor time (ms) of a frame of the laboratory with a run of `n_tokens`.
double cost_of_a_frame(int n_tokens) {
  DrawnWindow window;
  window.shell.take(streams::race({"ar", "recycling"}, n_tokens));
  window.shell.show(ui::Screen::Lab);
  window.shell.selection().run = 2;
  for (int i = 0; i < 4; ++i) window.gui.frame(window.shell);
  return test::least_worked_ms(20, [&] { window.gui.frame(window.shell); });
}

TEST(Laboratory, frame_cost_of_a_long_run_is_bounded) {
  const double few = cost_of_a_frame(300), many = cost_of_a_frame(20'000);
  EXPECT_LT(many, 3 * few) << few << " ms for a run of 300 tokens";
}

TEST(Laboratory, panels_have_pictures) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const char* wanted = std::getenv("DECOSCOPE_PICTURES");
  const fs::path folder = wanted ? fs::path(wanted) : fs::temp_directory_path();
  for (const char* theme : {"dark", "light", "monochrome"}) {
    for (const auto& [name, path] :
         {std::pair{"draft", kDraft}, {"rejection", kRejection}, {"lookahead", kLookahead}}) {
      engine::EventQueue events;
      engine::CommandQueue commands;
      ui::WindowOptions options{.open = path,
                                .screen = "lab",
                                .theme = theme,
                                .config_dir = "-",
                                .run = std::string(name) == "rejection" ? 1 : 2};
      options.screenshot = (folder / fmt::format("lab-{}-{}.png", name, theme)).string();
      options.screenshot_frames = 12;
      EXPECT_EQ(ui::run_window(events, commands, streams::catalog(), options), 0);
      std::ifstream in(options.screenshot, std::ios::binary);
      const std::string png{std::istreambuf_iterator<char>(in), {}};
      EXPECT_GT(png.size(), 20'000u) << name;
      if (!wanted) fs::remove(options.screenshot);
    }
  }
}

}  // namespace

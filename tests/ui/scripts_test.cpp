// Scripts in a window: the test engine moves mouse and keys, and a replayed list of events answers the
// commands.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/recording/recorder.h"
#include "tests/support/needs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/streams.h"
#include "ui/panels/live/block_grid.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/shell/panel.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"
#include "ui/widgets/draw.h"

namespace {

namespace fs = std::filesystem;

using namespace scripted;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Scripts, run_pause_and_step) {
  play("run_hold_and_step", [](ImGuiTestContext* ctx, Stage& stage) {
    ctx->ItemClick("//##top/###run");
    wait_until(ctx, [&] { return run_of(stage) && run_of(stage)->steps.size() > 3; });
    ctx->ItemClick("//##top/###hold");
    wait_until(ctx, [&] { return stage.shell->session().live().timeline.held(); });
    const auto n_complete = [&] {
      std::size_t n = 0;
      for (const engine::StepRecord& step : run_of(stage)->steps) n += step.complete;
      return n;
    };
    const std::size_t before = n_complete();
    ctx->Yield(5);
    IM_CHECK_EQ(n_complete(), before);
    ctx->ItemClick("//##top/Step");
    wait_until(ctx, [&] { return n_complete() == before + 1; });
    ctx->KeyPress(ImGuiKey_N);
    wait_until(ctx, [&] { return n_complete() == before + 2; });
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_Space);
    wait_until(ctx, [&] { return n_complete() > before + 4; });
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Period);
    wait_until(ctx, [&] { return run_of(stage)->over(); });
    IM_CHECK_EQ(stage.replay->asked.back(), std::string("stop"));
  });
}

TEST(Scripts, selected_token_is_lit_in_three_panels) {
  play("select_token", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    // Tokens near the end, because the panel has scrolled there and cells out of view are not drawn.
    const auto& tokens = run_of(stage)->tokens;
    const engine::TokenRecord token = tokens[tokens.size() - 2];
    const std::string cell = "$$" + std::to_string(token.pos * 2) + "/cell";
    ctx->SetRef(ImGui::FindWindowByName("Text###live.text"));
    ctx->ItemClick(cell.c_str());
    const ui::Place place = stage.shell->selection().locked;
    IM_CHECK_EQ(place.position, token.pos);
    IM_CHECK_EQ(place.step, token.step);
    ctx->KeyPress(ImGuiKey_V);
    IM_CHECK_EQ(stage.shell->message().find("Step " + std::to_string(token.step) + ":"),
                std::size_t{0});
    ctx->ItemClick(cell.c_str());
    IM_CHECK(!stage.shell->selection().locked.valid());
    // Each panel highlights the selected token; another token is highlighted elsewhere.
    for (const char* panel :
         {"Text###live.text", "Timeline###live.gantt", "Trajectory###live.trajectory"}) {
      std::vector<Points> seen;  // points of the newest tokens in view, of two steps
      engine::StepId before = -1;
      for (std::size_t i = tokens.size(); i-- > 0 && seen.size() < 2;) {
        if (tokens[i].step == before) continue;
        Points points = lit_by(ctx, stage, panel, {1, tokens[i].step, tokens[i].pos, -1});
        if (points.size() < 4) continue;
        before = tokens[i].step;
        seen.push_back(std::move(points));
      }
      IM_CHECK_EQ(seen.size(), std::size_t{2});
      IM_CHECK(seen[0] != seen[1]);
      // Time and columns increase to the right.
      if (std::string(panel) != "Text###live.text")
        IM_CHECK_GT(seen[0].back().first, seen[1].back().first);
    }
    // The token under the mouse is lit in the other panels without a click.
    stage.shell->selection().locked = {};
    for (const char* panel : {"Timeline###live.gantt", "Trajectory###live.trajectory"}) {
      ctx->MouseMoveToPos({5, ImGui::GetMainViewport()->Size.y - 5});
      ctx->Yield(3);
      const Points without = lit_in(panel);
      ctx->SetRef(ImGui::FindWindowByName("Text###live.text"));
      ctx->MouseMove(cell.c_str());
      ctx->Yield(3);
      const Points with = lit_in(panel);
      IM_CHECK_EQ(stage.shell->selection().hovered.position, token.pos);
      IM_CHECK_GE(with.size(), without.size() + 4);
    }
    const ui::Place other{1, tokens[tokens.size() / 2].step, tokens[tokens.size() / 2].pos, -1};
    // The Inspector describes the selection.
    stage.shell->selection().locked = other;
    ctx->SetRef(ImGui::FindWindowByName("Inspector###live.inspector"));
    ctx->Yield(2);
    ctx->ItemClick("Copy sentence");
    ctx->Yield(2);
    IM_CHECK_EQ(
        std::string(ImGui::GetClipboardText()).find("Step " + std::to_string(other.step) + ":"),
        std::size_t{0});
  });
}

TEST(Scripts, the_playhead_steps_and_follows) {
  play("playhead", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    ctx->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK(!stage.shell->playhead().follows());
    const double at = stage.shell->playhead().at;
    ctx->KeyPress(ImGuiKey_LeftArrow);
    IM_CHECK_LT(stage.shell->playhead().at, at);
    ctx->KeyPress(ImGuiKey_Home);
    IM_CHECK_EQ(stage.shell->playhead().at, 0.0);
    ctx->KeyPress(ImGuiKey_End);
    IM_CHECK(stage.shell->playhead().follows());
    ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
    ctx->ItemClick("ruler");
    IM_CHECK(!stage.shell->playhead().follows());
  });
}

int corners_of(const char* panel) {
  return ImGui::FindWindowByName(panel)->DrawList->VtxBuffer.Size;
}

TEST(Scripts, lanes_collapse_move_and_hide) {
  play("lanes", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "lookahead";
    run_to_the_end(ctx, stage);
    using ui::LaneKind;
    ui::LaneOrder& lanes = stage.shell->notes().lanes;
    const std::vector<ui::LaneKey> natural{
        {-1, LaneKind::Target}, {-1, LaneKind::Verify}, {-1, LaneKind::Commit}};
    ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
    ctx->ItemClick("target/label");
    IM_CHECK(lanes.collapsed(natural[0]));
    ctx->ItemClick("target/label");
    IM_CHECK(!lanes.collapsed(natural[0]));
    // A lane that is dragged to the top stays there and is not collapsed.
    ctx->ItemDragWithDelta("commit/label", ImVec2(0, -300));
    IM_CHECK(lanes.arranged(natural).front() == natural[2]);
    IM_CHECK(!lanes.collapsed(natural[2]));
    ctx->ItemClick("verify/label", ImGuiMouseButton_Right);
    ctx->ItemClick("//$FOCUSED/Hide");
    IM_CHECK_EQ(lanes.n_hidden(natural), 1);
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("verify/label"));
    ctx->ItemClick("###hidden");
    ctx->Yield(3);
    IM_CHECK(ctx->ItemExists("verify/label"));
  });
}

TEST(Scripts, flow_of_selected_token_is_drawn) {
  play("arrows", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const char* panel = "Timeline###live.gantt";
    const auto& tokens = run_of(stage)->tokens;
    const engine::TokenRecord token = tokens[tokens.size() / 2];
    ctx->MouseMoveToPos({5, ImGui::GetMainViewport()->Size.y - 5});
    for (const ui::ClockKind clock :
         {ui::ClockKind::Compute, ui::ClockKind::Position, ui::ClockKind::Step, ui::ClockKind::Wall,
          ui::ClockKind::Normalised}) {
      stage.shell->state<ui::TimelineView>().clock = clock;
      stage.shell->selection().locked = {};
      ctx->Yield(3);
      const int without = corners_of(panel);
      stage.shell->selection().locked = {1, token.step, token.pos, -1};
      ctx->Yield(3);
      IM_CHECK_GT(corners_of(panel), without + 3 * 20);  // at least three curves
    }
  });
}

TEST(Scripts, mouse_zooms_and_measures_on_the_timeline) {
  play("measure", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    const ui::TimeRange& view = stage.shell->state<ui::TimelineView>().range;
    ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
    const ImRect lanes = ctx->ItemInfo("lanes").RectFull;
    const auto at = [&](float share) {
      return ImVec2(lanes.Min.x + lanes.GetWidth() * share, lanes.Min.y + 12);
    };
    const auto drag = [&](float from, float to, ImGuiMouseButton button) {
      ctx->MouseMoveToPos(at(from));
      ctx->MouseDown(button);
      ctx->MouseMoveToPos(at(to));
      ctx->MouseUp(button);
      ctx->Yield(2);
    };
    drag(0.2f, 0.4f, ImGuiMouseButton_Left);
    const double end = view.range1;
    IM_CHECK_GT(end, view.range0);
    // Dragging the left end keeps the right end.
    drag(0.2f, 0.1f, ImGuiMouseButton_Left);
    IM_CHECK_EQ(std::max(view.range0, view.range1), end);
    const double begin = std::min(view.range0, view.range1);
    ctx->MouseMoveToPos(at(0.7f));
    ctx->MouseClick(ImGuiMouseButton_Right);
    ctx->ItemClick("//$FOCUSED/Zoom to the range");
    IM_CHECK_EQ(view.t0, begin);
    IM_CHECK_EQ(view.t1, end);
    drag(0.25f, 0.75f, ImGuiMouseButton_Middle);
    const double wide = end - begin;
    IM_CHECK_LT(std::abs(view.t1 - view.t0 - wide / 2), wide / 50);
    ctx->KeyPress(ImGuiKey_0);
    IM_CHECK_EQ(view.t0, view.t1);
    // A middle click zooms to the step under the mouse.
    ctx->MouseMoveToPos(at(0.5f));
    ctx->MouseClick(ImGuiMouseButton_Middle);
    ctx->Yield(2);
    IM_CHECK_GT(view.t1, view.t0);
    IM_CHECK_LT(view.t1 - view.t0, 20e6);
  });
}

TEST(Scripts, double_click_shows_the_inspector) {
  play("details", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const auto in_front = [] {
      const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
      return std::string(window ? window->RootWindow->Name : "");
    };
    const auto& tokens = run_of(stage)->tokens;
    const engine::TokenRecord token = tokens[tokens.size() - 2];
    ctx->SetRef(ImGui::FindWindowByName("Text###live.text"));
    ctx->MouseMove(("$$" + std::to_string(token.pos * 2) + "/cell").c_str());
    ctx->MouseDoubleClick();
    ctx->Yield(3);
    IM_CHECK_EQ(in_front(), std::string("Inspector###live.inspector"));
    IM_CHECK_EQ(stage.shell->selection().locked.position, token.pos);
    // A double click on a slice of the timeline does the same; the zoom stays.
    stage.shell->selection().locked = {};
    ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
    const ImRect lanes = ctx->ItemInfo("lanes").RectFull;
    ctx->MouseMoveToPos({lanes.Min.x + lanes.GetWidth() * 0.5f, lanes.Min.y + 12});
    ctx->MouseDoubleClick();
    ctx->Yield(3);
    IM_CHECK_EQ(in_front(), std::string("Inspector###live.inspector"));
    IM_CHECK_GE(stage.shell->selection().locked.step, 0);
    const ui::TimeRange& view = stage.shell->state<ui::TimelineView>().range;
    IM_CHECK_EQ(view.t0, view.t1);
  });
}

TEST(Scripts, legend_button_explains_a_panel) {
  play("marks", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    for (const char* word : {"**/###marks_text", "**/###marks_gantt", "**/###marks_trajectory"}) {
      ctx->MouseMove(word);
      ctx->Yield(2);
      const ImGuiWindow* tip = ImGui::FindWindowByName("##Tooltip_00");
      IM_CHECK(tip && tip->Active);
      IM_CHECK_GT(tip->Size.y, 10 * 23.0f);  // one line per mark
    }
  });
}

TEST(Scripts, key_is_rebound_in_the_key_list) {
  play("rebind", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    ui::Shell& shell = *stage.shell;
    const auto choose = [&](ImGuiKeyChord key) {
      shell.perform(ui::Action::Help);
      ctx->Yield(2);
      ctx->ItemClick("//##help/**/next-lens/###key");
      ctx->KeyPress(key);
      shell.perform(ui::Action::Deselect);
      ctx->Yield(2);
    };
    choose(ImGuiMod_Ctrl | ImGuiKey_L);
    const ui::Lens before = shell.state<ui::TextView>().lens;
    ctx->KeyPress(ImGuiKey_L);
    IM_CHECK(shell.state<ui::TextView>().lens == before);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_L);
    IM_CHECK(shell.state<ui::TextView>().lens != before);
    IM_CHECK_EQ(shell.settings().keys.at("next-lens"), ImGuiMod_Ctrl | ImGuiKey_L);
    const ui::Lens then = shell.state<ui::TextView>().lens;
    choose(ImGuiKey_Delete);
    IM_CHECK(shell.settings().keys.empty());
    ctx->KeyPress(ImGuiKey_L);
    IM_CHECK(shell.state<ui::TextView>().lens != then);
  });
}

TEST(Scripts, trajectory_shows_only_changed_cells) {
  play("only_changed", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const char* panel = "Trajectory###live.trajectory";
    ctx->Yield(3);
    const int all = corners_of(panel);
    ctx->ItemClick("**/only changed");
    IM_CHECK(stage.shell->state<ui::BlockGridView>().only_changed);
    ctx->Yield(3);
    IM_CHECK_LT(corners_of(panel), all);
  });
}

TEST(Scripts, four_lanes_race_on_the_compare_screen) {
  play("compare", [](ImGuiTestContext* ctx, Stage& stage) {
    ctx->KeyPress(ImGuiMod_Alt | ImGuiKey_2);
    IM_CHECK_EQ(static_cast<int>(stage.shell->screen()), static_cast<int>(ui::Screen::Compare));
    stage.replay->pace = 60;
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Enter);
    const auto& timeline = stage.shell->session().live().timeline;
    wait_until(ctx, [&] {
      const auto lanes = timeline.race(stage.shell->selection().race);
      return lanes.size() == 4 && lanes[3]->over() && lanes[0]->over();
    });
    ctx->SetRef(ImGui::FindWindowByName("Difference###compare.difference"));
    ctx->ItemClick("Copy table");
    ctx->Yield(2);
    IM_CHECK_NE(std::string(ImGui::GetClipboardText()).find("| speed-up |"), std::string::npos);
  });
}

TEST(Scripts, opens_a_recording_and_exports_a_trace) {
  const fs::path folder =
      fs::temp_directory_path() / ("decoscope-scripts" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string recording = (folder / "race.pdrun").string(),
                    trace = (folder / "trace.json").string(),
                    reported = (folder / "with_prompt.json").string(),
                    equal = (folder / "equal.json").string(),
                    part = (folder / "part.json").string();
  {
    engine::Recorder recorder(recording);
    for (const engine::Event& event : streams::race({"ar", "jacobi"})) recorder.push(event);
  }
  play("open_and_export", [&](ImGuiTestContext* ctx, Stage& stage) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx->ItemInputValue("//##open/##path", recording.c_str());
    wait_until(ctx,
               [&] { return !stage.shell->session().live_is_shown() && !stage.shell->reads(); });
    IM_CHECK_EQ(stage.shell->session().shown().timeline.runs().size(), std::size_t{2});
    IM_CHECK_EQ(static_cast<int>(stage.shell->screen()), static_cast<int>(ui::Screen::Compare));
    const auto export_as = [&](const char* button) {
      ctx->ItemClick((std::string("//##export/###") + button).c_str());
      wait_until(ctx, [&] { return !stage.shell->exports(); });
    };
    const auto export_now = [&] { export_as("do_trace"); };
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    ctx->ItemInputValue("//##export/##path", trace.c_str());
    export_now();
    IM_CHECK(fs::exists(trace));
    IM_CHECK_GT(fs::file_size(trace), std::uintmax_t{1000});
    export_as("do_description");
    IM_CHECK_NE(contents(folder / "trace.txt").find("Step 1: "), std::string::npos);
    export_as("do_report");
    IM_CHECK_NE(contents(folder / "trace.md").find("Prompt: left out"), std::string::npos);
    const std::string left_out = "(left out of this page)";
    export_as("do_page");
    IM_CHECK_NE(contents(folder / "trace.html").find(left_out), std::string::npos);
    // The prompt's text is exported only if the box is ticked.
    IM_CHECK_EQ(contents(trace).find("\"prompt\":"), std::string::npos);
    IM_CHECK_NE(contents(trace).find("\"prompt_hash\":"), std::string::npos);
    ctx->ItemInputValue("//##export/##path", reported.c_str());
    ctx->ItemCheck("//##export/###prompt_text");
    export_now();
    IM_CHECK_NE(contents(reported).find("\"prompt\":"), std::string::npos);
    export_as("do_report");
    IM_CHECK_NE(contents(folder / "with_prompt.md").find("Prompt:\n"), std::string::npos);
    ctx->ItemCheck("//##export/###any_page_size");
    export_as("do_page");
    IM_CHECK_NE(contents(folder / "with_prompt.html").find("id=\"data\""), std::string::npos);
    IM_CHECK_EQ(contents(folder / "with_prompt.html").find(left_out), std::string::npos);
    ctx->ItemInputValue("//##export/##path", equal.c_str());
    ctx->ItemCheck("//##export/###equal_compute");
    export_now();
    IM_CHECK_NE(contents(equal).find("\"clock\":\"own_compute\""), std::string::npos);
    IM_CHECK_NE(contents(reported).find("\"clock\":\"engine_steady\""), std::string::npos);
    ctx->ItemUncheck("//##export/###equal_compute");
    ctx->ItemClick("//##export/###cancel_export");
    // A trace of the measured range alone has one run and fewer events. The boxes are cleared when the dialog opens again.
    ctx->KeyPress(ImGuiKey_LeftArrow);
    ctx->KeyPress(ImGuiKey_R);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    ctx->ItemInputValue("//##export/##path", part.c_str());
    ctx->ItemCheck("//##export/###range_only");
    export_now();
    IM_CHECK_EQ(contents(part).find("\"prompt\":"), std::string::npos);
    IM_CHECK_LT(contents(part).size(), contents(trace).size() / 4);
  });
  fs::remove_all(folder);
}

TEST(Scripts, second_save_uses_the_folder_of_the_first) {
  const fs::path folder =
      fs::temp_directory_path() / ("decoscope-saves" + std::to_string(getpid()));
  fs::remove_all(folder);
  play("save", [&](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_S);
    ctx->Yield(2);
    IM_CHECK(!fs::exists("session.pdrun"));
    ctx->ItemInputValue("//##save/##path", (folder / "mine.pdrun").string().c_str());
    ctx->Yield();
    wait_until(ctx, [&] { return !stage.shell->saves(); });
    IM_CHECK(fs::exists(folder / "mine.pdrun"));
    IM_CHECK_NE(stage.shell->message().find(folder.string()), std::string::npos);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_S);
    ctx->Yield();
    wait_until(ctx, [&] { return !stage.shell->saves(); });
    IM_CHECK(fs::exists(folder / "session.pdrun"));
  });
  fs::remove_all(folder);
}

TEST(Scripts, typing_replaces_the_text_of_a_dialog) {
  play("dialog_text", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    for (const char* text : {"def", "for"}) {
      ctx->KeyPress(ImGuiKey_Slash);
      ctx->Yield(3);
      ctx->KeyChars(text);
      ctx->Yield(2);
      IM_CHECK_EQ(stage.shell->find_text(), std::string(text));
      ctx->KeyPress(ImGuiKey_Escape);
      ctx->KeyPress(ImGuiKey_Escape);
      ctx->Yield(2);
    }
  });
}

TEST(Scripts, keys_walk_iterations_lanes_and_flow) {
  play("walk", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    ctx->KeyPress(ImGuiKey_Home);
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_RightArrow);
    const double first = shell.playhead().at;
    IM_CHECK_GT(first, 0.0);
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_RightArrow);
    IM_CHECK_GT(shell.playhead().at, first);
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_LeftArrow);
    IM_CHECK_EQ(shell.playhead().at, first);
    // Moving along the lane changes the selection and not the playhead.
    const engine::StepId at = shell.selection().locked.step;
    ctx->KeyPress(ImGuiKey_Period);
    ctx->KeyPress(ImGuiKey_Period);
    IM_CHECK_EQ(shell.selection().locked.step, at + 2);
    ctx->KeyPress(ImGuiKey_Comma);
    IM_CHECK_EQ(shell.selection().locked.step, at + 1);
    IM_CHECK_EQ(shell.playhead().at, first);
    // Moving along a token's flow: back to its guess and forward to its commit.
    const auto& tokens = run_of(stage)->tokens;
    const engine::TokenRecord& token = tokens[tokens.size() / 2];
    shell.selection().locked = {1, token.step, token.pos, -1};
    ctx->KeyPress(ImGuiKey_LeftBracket);
    IM_CHECK_LT(shell.selection().locked.step, token.step);
    IM_CHECK_EQ(shell.selection().locked.position, token.pos);
    for (int i = 0; i < 20; ++i) ctx->KeyPress(ImGuiKey_RightBracket);
    IM_CHECK_EQ(shell.selection().locked.step, token.step);
  });
}

TEST(Scripts, marks_and_bookmarks_restore_places) {
  play("bookmarks", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    ui::Shell& shell = *stage.shell;
    shell.selection().locked = {1, 3, -1, -1};
    ctx->KeyPress(ImGuiKey_R);
    ui::TimeRange& view = shell.state<ui::TimelineView>().range;
    IM_CHECK_LT(view.range0, view.range1);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    shell.selection().locked = {1, 7, -1, -1};
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_1);
    IM_CHECK_EQ(shell.selection().locked.step, 3);
    const double third = shell.playhead().at;
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_2);
    IM_CHECK_EQ(shell.selection().locked.step, 7);
    IM_CHECK_GT(shell.playhead().at, third);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_3);
    IM_CHECK_NE(shell.message().find("no bookmark 3"), std::string::npos);
    // M sets a temporary mark; Shift+M keeps it, Esc removes a temporary mark.
    ctx->KeyPress(ImGuiKey_M);
    ctx->KeyPress(ImGuiKey_M);
    IM_CHECK_EQ(shell.notes().bookmarks.size(), std::size_t{3});
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_M);
    ctx->KeyPress(ImGuiKey_M);
    IM_CHECK_EQ(shell.notes().bookmarks.size(), std::size_t{4});
    ctx->KeyPress(ImGuiKey_Escape);
    IM_CHECK_EQ(shell.notes().bookmarks.size(), std::size_t{3});
    // F centres at the current zoom; F again zooms to the place.
    shell.selection().locked = {1, 5, -1, -1};
    view.range0 = view.range1 = 0;
    view.t0 = 1e6, view.t1 = 51e6;
    ctx->KeyPress(ImGuiKey_F);
    IM_CHECK_LT(std::abs(view.t1 - view.t0 - 50e6), 1.0);
    ctx->KeyPress(ImGuiKey_F);
    IM_CHECK_LT(view.t1 - view.t0, 49e6);
  });
}

TEST(Scripts, F6_cycles_panels_and_escape_ends_presentation) {
  play("panels", [](ImGuiTestContext* ctx, Stage& stage) {
    run_to_the_end(ctx, stage);
    const auto focused = [] {
      const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
      return window ? std::string(window->RootWindow->Name) : std::string();
    };
    std::vector<std::string> seen;
    const auto always_there = [](const char* id) { return !ui::panel_named(id)->offered; };
    const auto n = std::ranges::count_if(ui::panels_of(ui::Screen::Live), always_there);
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      ctx->KeyPress(ImGuiKey_F6);
      ctx->Yield(2);
      seen.push_back(focused());
    }
    std::sort(seen.begin(), seen.end());
    IM_CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    const std::string at = focused();
    ctx->KeyPress(ImGuiKey_F6);
    ctx->Yield(2);
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_F6);
    ctx->Yield(2);
    IM_CHECK_EQ(focused(), at);
    const float size = ImGui::GetFontSize();
    ctx->KeyPress(ImGuiKey_F11);
    ctx->Yield(3);
    IM_CHECK(stage.shell->presents());
    IM_CHECK_GT(ImGui::GetFontSize(), size * 1.2f);
    // Esc closes the sheet, then removes the selection, then ends presentation mode.
    stage.shell->selection().locked = {run_of(stage)->id(), 2, -1, -1};
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Comma);
    ctx->Yield(3);
    const ImGuiWindow* sheet = ImGui::FindWindowByName("##settings");
    IM_CHECK(sheet != nullptr && sheet->WasActive);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!sheet->WasActive);
    IM_CHECK(stage.shell->selection().locked.valid());
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!stage.shell->selection().locked.valid());
    IM_CHECK(stage.shell->presents());
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!stage.shell->presents());
    IM_CHECK_EQ(ImGui::GetFontSize(), size);
  });
}

TEST(Scripts, keys_are_unique_and_documented) {
  std::set<std::pair<int, bool>> chords;
  std::set<std::string> names;
  for (const ui::KeyAction& key : ui::key_actions()) {
    EXPECT_TRUE(chords.insert({key.chord, false}).second) << key.keys;
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_NE(std::string(key.does), "");
  }
}

TEST(Scripts, closing_while_decoding_stops_the_engine) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue events;
  engine::CommandQueue commands;
  Replay replay(events, commands);
  replay.pace = 1;
  commands.push(engine::StartRun{.lanes = {{"lookahead", {}}}});
  int n_frames = 0;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.draw_always = true;
  options.hooks.wants_to_close = [&] {
    replay.turn();
    return ++n_frames > 30;
  };
  EXPECT_EQ(ui::run_window(events, commands, streams::catalog(), options), 0);
  replay.turn();
  ASSERT_FALSE(replay.asked.empty());
  EXPECT_EQ(replay.asked.back(), "stop");
}

}  // namespace

// Selections of several places: tokens with Shift and Ctrl, the steps of a figure, runs to compare; and
// the filters and names of runs and n-grams.
#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>
#include <imgui_te_internal.h>

#include "tests/ui/support/chart_mouse.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/results/runs.h"
#include "ui/panels/step/pool.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/search.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/describe_place.h"
#include "ui/prepare/tokens/text_cells.h"

namespace {

using namespace scripted;
using testing::HasSubstr;

ui::Place step(engine::StepId id, int position = -1) {
  return {1, id, position, -1};
}

TEST(Selection, places_stay_selected_until_another_is_locked) {
  ui::Selection selection;
  selection.click(step(3, 40));
  EXPECT_FALSE(selection.several());
  selection.click(step(5, 44), {.ctrl = true});
  EXPECT_TRUE(selection.several());
  EXPECT_EQ(selection.locked, step(5, 44));
  EXPECT_TRUE(selection.lights_position(1, 40));
  EXPECT_TRUE(selection.lights_position(1, 44));
  EXPECT_FALSE(selection.lights_position(1, 41));
  EXPECT_FALSE(selection.lights_position(2, 40)) << "another run";
  EXPECT_TRUE(selection.lights_steps(1, 0, 3));
  EXPECT_FALSE(selection.lights_steps(1, 4, 4));
  // A second Ctrl+click removes it again.
  selection.click(step(5, 44), {.ctrl = true});
  EXPECT_FALSE(selection.several());
  EXPECT_TRUE(selection.lights_position(1, 40));
  EXPECT_FALSE(selection.lights_position(1, 44));
  // While the pointer is over another place, only that place is lit.
  selection.choose({step(1), step(2), step(9)}, step(9), "were many");
  selection.hover(step(7));
  selection.begin_frame();
  EXPECT_TRUE(selection.lights_step(1, 7));
  EXPECT_FALSE(selection.lights_step(1, 2));
  selection.begin_frame();
  EXPECT_TRUE(selection.lights_step(1, 2));
  // Moving between the selected places keeps the selection; locking another place clears it.
  selection.move_to(step(2));
  selection.begin_frame();
  EXPECT_EQ(selection.chosen().places().size(), 3u);
  selection.locked = step(4);
  selection.begin_frame();
  EXPECT_FALSE(selection.lights_step(1, 9));
  selection.locked = step(2);
  selection.begin_frame();
  EXPECT_FALSE(selection.several());
}

TEST(Choosing, each_figure_selects_the_steps_it_counts) {
  for (const char* decoder : {"ar", "jacobi", "lookahead", "prompt-lookup"}) {
    SCOPED_TRACE(decoder);
    engine::Timeline timeline;
    for (const engine::Event& event : streams::one_run(decoder)) timeline.apply(event);
    const engine::RunRecord& run = *timeline.run(1);
    ui::RunTimes times;
    extend(times, run);
    const std::size_t n = times.steps.size();
    ui::Tally tally;
    advance(tally, run, n);
    for (std::size_t k = 0; k < tally.committed.size(); ++k)
      EXPECT_EQ(steps_that_committed(times, n, static_cast<int>(k)).size(),
                static_cast<std::size_t>(tally.committed[k]));
    for (std::size_t place = 1; place <= tally.by_place.size(); ++place) {
      const auto steps = ui::steps_verifying(run, n, static_cast<int>(place));
      EXPECT_LE(steps.size(), static_cast<std::size_t>(tally.by_place[place - 1].verified));
      EXPECT_EQ(steps.empty(), tally.by_place[place - 1].verified == 0);
    }
    const ui::StepHistogram histogram = step_histogram(times, n, 24);
    std::size_t all = 0;
    for (int bin = 0; bin < 24; ++bin) {
      const auto steps = steps_in_bin(times, n, histogram, bin);
      EXPECT_EQ(steps.size(), static_cast<std::size_t>(histogram.count[bin]));
      all += steps.size();
    }
    EXPECT_EQ(all, n);
    EXPECT_EQ(steps_in_set(times, n, ui::StepSet::All).size(), n);
    std::int64_t proposed = 0;
    for (const engine::StepId id : steps_in_set(times, n, ui::StepSet::Proposed))
      proposed += run.steps.head(static_cast<std::size_t>(id)).n_proposed;
    EXPECT_EQ(proposed, times.total.proposed);
    EXPECT_EQ(steps_in_set(times, n, ui::StepSet::First).size(), 1u);
    EXPECT_FALSE(steps_in_set(times, n, ui::StepSet::Median).empty());
    EXPECT_TRUE(steps_without_acceptance(times, n).empty());
  }
}

// Returns a run that proposes in every step; only step `accepted_at` accepts a proposal, or none.
std::vector<engine::Event> in_vain(int n_steps, int accepted_at = -1) {
  std::vector<engine::Event> events{streams::story().model,
                                    engine::RunStarted{.run = 1,
                                                       .model = streams::story().model.model,
                                                       .decoder = "jacobi",
                                                       .prompt_tokens = {1, 2}}};
  for (int i = 0; i < n_steps; ++i) {
    const engine::Nanoseconds t = 1000 + i * 100;
    const int n_accepted = i == accepted_at ? 1 : 0;
    events.push_back(engine::StepBegun{.t = t, .run = 1, .step = i, .kv_len = 2 + i, .n_rows = 3});
    engine::Verified verified{.t = t + 50, .run = 1, .step = i};
    verified.n_proposed = 2;
    verified.n_accepted = n_accepted;
    verified.n_rejected = 1;
    verified.n_unused = 1 - n_accepted;
    events.push_back(verified);
    events.push_back(engine::Committed{.t = t + 60,
                                       .run = 1,
                                       .step = i,
                                       .first_pos = 2 + i,
                                       .tokens = {3},
                                       .status = {engine::TokenStatus::Bonus},
                                       .origin = {{}}});
    events.push_back(engine::StepEnded{.t = t + 90, .run = 1, .step = i, .forward = 80});
  }
  return events;
}

TEST(Choosing, warning_after_20_steps_without_acceptance) {
  const auto vain = [](const std::vector<engine::Event>& events) {
    engine::Timeline timeline;
    for (const engine::Event& event : events) timeline.apply(event);
    EXPECT_EQ(timeline.n_inconsistent(), 0);
    ui::RunTimes times;
    extend(times, *timeline.run(1));
    return steps_without_acceptance(times, times.steps.size());
  };
  EXPECT_TRUE(vain(in_vain(19)).empty());
  EXPECT_EQ(vain(in_vain(20)).size(), 20u);
  EXPECT_EQ(vain(in_vain(30)).front(), 10);
  EXPECT_TRUE(vain(in_vain(30, 25)).empty()) << "the last 20 steps contain an acceptance";
  EXPECT_EQ(vain(in_vain(30, 5)).size(), 20u) << "the acceptance is older than 20 steps";
}

TEST(Choosing, steps_without_acceptance_lead_to_the_distributions) {
  play("show_pq", [](ImGuiTestContext* ctx, Stage& stage) {
    std::vector<engine::Event> events = streams::one_run("speculative", 200);
    for (engine::Event& event : events)
      if (auto* verified = std::get_if<engine::Verified>(&event))
        verified->n_rejected += std::exchange(verified->n_accepted, 0);
    stage.shell->take(std::move(events));
    ctx->Yield(6);
    ctx->SetRef(ImGui::FindWindowByName("Numbers###live.numbers"));
    ctx->ItemClick("###show_pq");
    ctx->Yield(6);
    ui::RunTimes times;
    extend(times, *run_of(stage));
    const auto steps = steps_without_acceptance(times, times.steps.size());
    IM_CHECK_EQ(steps.size(), std::size_t{20});
    IM_CHECK(stage.shell->selection().locked == step(steps.back()));
    const ImGuiWindow* panel = ImGui::FindWindowByName("###live.distributions");
    IM_CHECK(panel && panel->DockTabIsVisible);
  });
}

TEST(Choosing, search_ignores_case) {
  EXPECT_TRUE(ui::found_in("return Value", "VALUE"));
  EXPECT_TRUE(ui::found_in("anything", ""));
  EXPECT_TRUE(ui::found_in("", ""));
  EXPECT_FALSE(ui::found_in("short", "shorter"));
  EXPECT_FALSE(ui::found_in("", "a"));
}

TEST(Choosing, selected_tokens_are_described_as_one_text) {
  engine::Timeline timeline;
  for (const engine::Event& event : streams::one_run("lookahead")) timeline.apply(event);
  const engine::RunRecord& run = *timeline.run(1);
  std::vector<ui::Place> places;
  std::vector<engine::TokenId> ids;
  for (std::size_t i = 10; i < 15; ++i) {
    places.push_back({1, run.tokens[i].step, run.tokens[i].pos, -1});
    ids.push_back(run.tokens[i].id);
  }
  std::swap(places[0], places[3]);  // the order of clicks does not matter
  const ui::Chosen chosen(places, "");
  EXPECT_EQ(text_of(timeline, run, chosen), timeline.plain_text_of(run, ids));
  const ui::PlaceFacts facts = describe_places(timeline, run, chosen);
  EXPECT_EQ(facts.title, "5 tokens selected");
  EXPECT_THAT(facts.sentence, HasSubstr(timeline.plain_text_of(run, ids)));
  const ui::Chosen steps({{1, 2, -1, -1}, {1, 4, -1, -1}}, "committed 3 tokens");
  EXPECT_THAT(describe_places(timeline, run, steps).sentence,
              HasSubstr("2 steps that committed 3 tokens: "));
}

constexpr const char* kPanels[] = {"Text###live.text", "Timeline###live.gantt",
                                   "Trajectory###live.trajectory"};

std::string cell_of(const engine::TokenRecord& token) {
  return "$$" + std::to_string(token.pos * 2) + "/cell";
}

void click_with(ImGuiTestContext* ctx, ImGuiKey modifier, const std::string& item) {
  ctx->KeyDown(modifier);
  ctx->ItemClick(item.c_str());
  ctx->KeyUp(modifier);
  ctx->Yield(2);
}

TEST(Choosing, shift_and_ctrl_select_in_all_panels) {
  play("choose_tokens", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Selection& selection = stage.shell->selection();
    stage.shell->form().live.decoder = "jacobi";
    run_to_the_end(ctx, stage);
    const auto& tokens = run_of(stage)->tokens;
    const std::size_t n = tokens.size();
    ctx->SetRef(ImGui::FindWindowByName(kPanels[0]));
    ctx->ItemClick(cell_of(tokens[n - 2]).c_str());
    put_mouse_away(ctx);
    std::vector<Points> alone;
    for (const char* panel : kPanels) alone.push_back(lit_in(panel));
    ctx->SetRef(ImGui::FindWindowByName(kPanels[0]));
    click_with(ctx, ImGuiMod_Shift, cell_of(tokens[n - 9]));
    IM_CHECK_EQ(selection.chosen().places().size(), std::size_t{8});
    IM_CHECK_EQ(selection.locked.position, tokens[n - 2].pos);  // the first end of the range
    put_mouse_away(ctx);
    for (std::size_t i = 0; i < alone.size(); ++i)
      IM_CHECK_GT(lit_in(kPanels[i]).size(), alone[i].size());
    // The next range runs from the same first end to another token.
    ctx->SetRef(ImGui::FindWindowByName(kPanels[0]));
    click_with(ctx, ImGuiMod_Shift, cell_of(tokens[n - 4]));
    IM_CHECK_EQ(selection.chosen().places().size(), std::size_t{3});
    click_with(ctx, ImGuiMod_Ctrl, cell_of(tokens[n - 8]));
    IM_CHECK_EQ(selection.chosen().places().size(), std::size_t{4});
    IM_CHECK(selection.lights_step(1, tokens[n - 8].step));
    // Ctrl+C copies the selected tokens instead of the whole answer.
    put_mouse_away(ctx);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    ctx->Yield(2);
    const engine::TokenId ids[] = {tokens[n - 8].id, tokens[n - 4].id, tokens[n - 3].id,
                                   tokens[n - 2].id};
    IM_CHECK_EQ(std::string(ImGui::GetClipboardText()),
                stage.shell->session().shown().timeline.plain_text_of(*run_of(stage), ids));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!selection.several());
    IM_CHECK(!selection.locked.valid());
  });
}

TEST(Choosing, click_on_a_figure_selects_its_steps) {
  play("click_number", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live.decoder = "lookahead";
    run_to_the_end(ctx, stage);
    const engine::RunRecord& run = *run_of(stage);
    const auto chosen = [&]() -> const ui::Chosen& { return shell.selection().chosen(); };
    ctx->SetRef(ImGui::FindWindowByName("Numbers###live.numbers"));
    move_to_x(ctx, "##tokens committed per step", 2);
    ctx->MouseClick();
    ctx->Yield(2);
    std::size_t two = 0;
    for (std::size_t i = 0; i < run.steps.size(); ++i) two += run.steps.head(i).n_tokens == 2;
    IM_CHECK_GT(two, std::size_t{1});
    IM_CHECK_EQ(chosen().n_steps(), two);
    IM_CHECK_NE(shell.message().find("committed 2 tokens"), std::string::npos);
    // Keys move between the steps and keep them selected.
    const engine::StepId last = shell.selection().locked.step;
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_LeftArrow);
    ctx->Yield(2);
    IM_CHECK_LT(shell.selection().locked.step, last);
    IM_CHECK_EQ(run.steps.head(static_cast<std::size_t>(shell.selection().locked.step)).n_tokens,
                2);
    IM_CHECK_EQ(chosen().n_steps(), two);
    // A click on a figure selects the steps that it is computed from.
    ctx->ItemClick("acceptance rate");
    ctx->Yield(2);
    IM_CHECK_NE(shell.message().find("proposed tokens"), std::string::npos);
    IM_CHECK(std::ranges::all_of(chosen().places(), [&](const ui::Place& place) {
      return run.steps.head(static_cast<std::size_t>(place.step)).n_proposed > 0;
    }));
    // The keys have moved the playhead; figures cover the steps up to it.
    ctx->KeyPress(ImGuiKey_End);
    ctx->ItemClick("tokens \\/ step");
    ctx->Yield(2);
    IM_CHECK_EQ(chosen().n_steps(), run.steps.size());
  });
}

TEST(Choosing, pool_filter_reduces_rows) {
  play("pool_filter", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.form().live.decoder = "lookahead";
    run_to_the_end(ctx, stage);
    ctx->WindowFocus("Pool###live.pool");
    ctx->Yield(3);
    const auto rows = [] {
      int n = 0;
      for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
        if (window->WasActive && window->RootWindow &&
            std::string(window->RootWindow->Name) == "Pool###live.pool")
          n += window->DrawList->VtxBuffer.Size;
      return n;
    };
    const int all = rows();
    ctx->SetRef(ImGui::FindWindowByName("Pool###live.pool")->DockNode->HostWindow);
    ctx->ItemInputValue("**/##filter", "return");
    ctx->Yield(3);
    IM_CHECK_EQ(shell.state<ui::PoolView>().filter, std::string("return"));
    const int some = rows();
    IM_CHECK_LT(some, all);
    ctx->ItemInputValue("**/##filter", "no n-gram contains this text");
    ctx->Yield(3);
    IM_CHECK_LT(rows(), some);
  });
}

TEST(Choosing, marked_runs_are_renamed_and_compared) {
  play("runs", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    ctx->Yield(2);
    // The session has two runs and no race.
    auto events = streams::one_run("jacobi", 24, 1);
    auto more = streams::one_run("lookahead", 24, 2);
    events.insert(events.end(), more.begin() + 1, more.end());
    shell.take(events);
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().run, 2u);
    ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs"));
    ctx->ItemClick("$$1/##run", ImGuiMouseButton_Right);
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/Rename");
    ctx->Yield(2);
    ctx->KeyChars("with a wide window");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(2);
    IM_CHECK_EQ(shell.notes().run_names[1], std::string("with a wide window"));
    ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs"));
    click_with(ctx, ImGuiMod_Ctrl, "$$1/##run");
    IM_CHECK_EQ(shell.state<ui::RunsView>().marked.size(), std::size_t{2});
    ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs")->DockNode->HostWindow);
    ctx->ItemClick("**/###compare");
    ctx->Yield(3);
    IM_CHECK_EQ(static_cast<int>(shell.screen()), static_cast<int>(ui::Screen::Compare));
    // The runs are shown side by side in that order, each with its letter.
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C);
    ctx->Yield(2);
    IM_CHECK_EQ(
        std::string(ImGui::GetClipboardText()).find("|  | A lookahead | B with a wide window |"),
        std::size_t{0});
    // A run that starts replaces the marked runs.
    IM_CHECK_EQ(shell.selection().compared.size(), std::size_t{2});
    shell.take({engine::RunStarted{.run = 3, .model = 1, .decoder = "ar"}});
    IM_CHECK(shell.selection().compared.empty());
  });
}

TEST(Choosing, a_note_on_a_run_is_edited_in_its_menu) {
  play("run_note", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    ctx->Yield(2);
    shell.take(streams::one_run("jacobi", 24, 1));
    ctx->Yield(3);
    const auto open_field = [&] {
      ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs"));
      ctx->ItemClick("$$1/##run", ImGuiMouseButton_Right);
      ctx->Yield(2);
      ctx->ItemClick("//$FOCUSED/###note");
      ctx->Yield(3);
      ctx->SetRef(ImGui::FindWindowByName("Runs###live.runs"));
    };
    open_field();
    ctx->ItemClick("$$1/##note");
    ctx->KeyChars("too wide,");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->KeyChars("but fast");
    ctx->Yield(2);
    IM_CHECK(shell.notes().run_notes.empty());
    ctx->ItemClick("$$1/###save_note");
    ctx->Yield(2);
    IM_CHECK_EQ(shell.notes().run_notes[1], std::string("too wide,\nbut fast"));
    IM_CHECK_EQ(shell.state<ui::RunsView>().noting, 0u);
    // A note that is too long cannot be saved; "Cancel" keeps the old one.
    open_field();
    IM_CHECK_EQ(std::string(shell.state<ui::RunsView>().new_note.c_str()),
                std::string("too wide,\nbut fast"));
    ImGui::SetClipboardText(std::string(ui::kMaxRunNote, 'x').c_str());
    ctx->ItemClick("$$1/##note");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
    ctx->Yield(3);
    IM_CHECK((ctx->ItemInfo("$$1/###save_note").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    ctx->ItemClick("$$1/###cancel_note");
    ctx->Yield(2);
    IM_CHECK_EQ(shell.notes().run_notes[1], std::string("too wide,\nbut fast"));
    IM_CHECK_EQ(shell.state<ui::RunsView>().noting, 0u);
  });
}

TEST(Choosing, emoji_in_the_prompt_is_one_character) {
  play("emoji", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    const std::string smile = "\xF0\x9F\x98\x80", rocket = "\xF0\x9F\x9A\x80";
    shell.form().prompt.clear();
    ctx->Yield(2);
    ctx->SetRef(ImGui::FindWindowByName("Setup###live.setup"));
    ctx->ItemClick("##prompt");
    // KeyChars omits characters above U+FFFF.
    ctx->Inputs->Queue.push_back(ImGuiTestInput::ForChar(0x1F600));
    ctx->Yield(3);
    IM_CHECK_EQ(std::string(shell.form().prompt.c_str()), smile);
    ImGui::SetClipboardText(rocket.c_str());
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
    ctx->Yield(3);
    IM_CHECK_EQ(std::string(shell.form().prompt.c_str()), smile + rocket);
  });
}

// The text of a token reaches the cells unchanged; ImWchar holds it as one character.
TEST(Choosing, emoji_of_an_answer_is_drawn) {
  engine::ModelLoaded model{.model = 1, .name = "toy", .vocab_size = 2};
  model.pieces = {"a", "\xF0\x9F\x98\x80"};
  engine::Timeline timeline;
  timeline.apply(model);
  timeline.apply(engine::RunStarted{.run = 1, .model = 1, .decoder = "ar", .prompt_tokens = {1}});
  const auto cells = ui::text_cells(timeline, *timeline.run(1), 0, false);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].text, model.pieces[1]);
  EXPECT_EQ(ui::n_columns(cells[0].text), 2);
  unsigned int code = 0;
  EXPECT_EQ(ImTextCharFromUtf8(&code, cells[0].text.c_str(), nullptr), 4);
  EXPECT_EQ(code, 0x1F600u) << "decoded as U+FFFD";
  EXPECT_EQ(ImTextCountCharsFromUtf8(cells[0].text.c_str(), nullptr), 1);
}

}  // namespace

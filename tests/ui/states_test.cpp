// Empty panels give the reason and a remedy; pending requests show their progress. Also the panels that do
// not depend on runs: threads, recordings on disk, and the legend of every panel.
#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/waiting.h"
#include "ui/prepare/status.h"

namespace {

using namespace scripted;
using engine::test::Folder;
using testing::HasSubstr;
using testing::Not;

engine::Phase read_of(const char* model, double gigabytes, double seconds) {
  return {.t = static_cast<engine::Nanoseconds>(seconds * 1e9),
          .name = "load",
          .done = static_cast<std::int64_t>(gigabytes * 1e9),
          .total = 4'000'000'000,
          .detail = model};
}

engine::Timeline loading() {
  engine::Timeline timeline;
  timeline.apply(read_of("another", 0, 1));
  timeline.apply(read_of("another", 3, 2));
  timeline.apply(read_of("demo-target", 0.5, 10));
  timeline.apply(read_of("demo-target", 1, 11));
  timeline.apply(read_of("demo-target", 1.5, 12));
  return timeline;
}

TEST(Loading, has_speed_and_remaining_time) {
  const auto now = ui::loading_of(loading());
  ASSERT_TRUE(now);
  EXPECT_EQ(now->name, "demo-target");
  EXPECT_NEAR(now->per_second, 0.5e9, 1);
  EXPECT_NEAR(now->seconds_left(), 5, 1e-6);
  EXPECT_EQ(ui::loading_facts(*now), "1.50 of 4.00 GB, 0.50 GB/s, 5 s left");
  engine::Timeline begun;
  begun.apply(read_of("demo-target", 0.5, 10));
  EXPECT_EQ(ui::loading_facts(*ui::loading_of(begun)), "0.50 of 4.00 GB") << "the speed is unknown";
  begun.apply(read_of("demo-target", 4, 12));
  EXPECT_FALSE(ui::loading_of(begun));
  EXPECT_THAT(ui::status_of(loading(), nullptr, 0, false).text, HasSubstr("0.50 GB/s, 5 s left"));
  EXPECT_EQ((ui::Loading{.name = "grown", .done = 5, .total = 4, .per_second = 1}.seconds_left()),
            0);
}

TEST(Loading, is_shown_with_memory_in_the_text_panel) {
  DrawnWindow window;
  window.catalog.memory_bytes = 16'000'000'000;
  window.shell.take({read_of("demo-target", 1, 10), read_of("demo-target", 2, 11)});
  for (const ui::Screen screen : {ui::Screen::Live, ui::Screen::Compare}) {
    window.shell.show(screen);
    const std::string said = window.said();
    EXPECT_THAT(said, HasSubstr("2.00 of 4.00 GB, 1.00 GB/s, 2 s left"));
    EXPECT_THAT(said, HasSubstr("memory 4.00 of 16.00 GB available"));
    EXPECT_THAT(said, HasSubstr("Cancel"));
  }
}

TEST(Loading, can_be_cancelled) {
  play("cancel_loading", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->take({read_of("demo-target", 1, 10), read_of("demo-target", 2, 11)});
    ctx->Yield(3);
    ctx->ItemClick("//Text###live.text/###cancel_loading");
    wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
    IM_CHECK_EQ(stage.replay->asked.back(), std::string("stop"));
  });
}

TEST(NoRun, empty_panels_offer_run_and_open) {
  play("no_run", [](ImGuiTestContext* ctx, Stage& stage) {
    ctx->ItemClick("//Text###live.text/###open_here");
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("//##open/##path"));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    ctx->ItemClick("//Text###live.text/###run_here");
    wait_until(ctx, [&] { return run_of(stage) && run_of(stage)->steps.size() > 3; });
    IM_CHECK(!ctx->ItemExists("//Text###live.text/###run_here"));
  });
  play("no_race", [](ImGuiTestContext* ctx, Stage& stage) {
    stage.shell->show(ui::Screen::Compare);
    ctx->Yield(3);
    ctx->ItemClick("//Lanes###compare.lanes/###run_here");
    wait_until(ctx, [&] { return stage.shell->session().live().timeline.race(1).size() == 4; });
  });
}

TEST(EmptyPanel, links_to_other_panel_and_to_matching_run) {
  play("lacks", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    auto events = streams::one_run("jacobi", 24, 1);
    const auto more = streams::one_run("lookahead", 24, 2);
    events.insert(events.end(), more.begin() + 1, more.end());
    shell.take(events);
    shell.selection().run = 1;
    ctx->Yield(3);
    ctx->WindowFocus("Pool###live.pool");
    ctx->Yield(3);
    ctx->ItemClick("//Pool###live.pool/###instead");
    ctx->Yield(3);
    IM_CHECK(ImGui::FindWindowByName("Trajectory###live.trajectory")->DockTabIsVisible);
    ctx->WindowFocus("Pool###live.pool");
    ctx->Yield(3);
    ctx->ItemClick("//Pool###live.pool/###fitting");
    ctx->Yield(3);
    IM_CHECK_EQ(shell.selection().run, 2u);
    IM_CHECK(!ctx->ItemExists("//Pool###live.pool/###fitting"));
  });
}

TEST(Machine, has_one_line_per_thread) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("jacobi", 24));
  EXPECT_THAT(window.said(), Not(HasSubstr("thread 1")));
  for (int i = 0; i < 5; ++i)
    window.shell.take({engine::Sampled{.t = 5'000'000'000 + i,
                                       .period = 100'000'000,
                                       .device = "cpu",
                                       .busy_percent = 60,
                                       .thread_busy_percent = {12.5 + i, 99}}});
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr("thread 1 16 %"));
  EXPECT_THAT(said, HasSubstr("thread 2 99 %"));
}

TEST(Machine, shows_how_much_of_the_memory_limit_is_used) {
  DrawnWindow window;
  window.catalog.memory_bytes = std::int64_t{16} << 30;
  window.shell.show(ui::Screen::Live);
  const engine::Sampled sample{
      .t = 5'000'000'000, .period = 100'000'000, .device = "cpu", .busy_percent = 60};
  window.shell.take(streams::one_run("jacobi", 24));
  window.shell.take({sample});
  EXPECT_THAT(window.said(), HasSubstr(" of 4096 MB"));
  window.shell.settings().payload_mb = 64;
  window.shell.take({sample});
  EXPECT_THAT(window.said(), HasSubstr(" of 64 MB"));
}

TEST(Machine, shows_gpu_samples_or_one_line_without_driver) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  window.shell.take(streams::one_run("jacobi", 24));
  window.shell.take({engine::Sampled{.t = 5'000'000'000,
                                     .period = 100'000'000,
                                     .device = "cuda:0",
                                     .busy_percent = 87,
                                     .thread_busy_percent = {61},
                                     .gpu_memory_busy_percent = 41,
                                     .gpu_memory_used_bytes = 50'000'000'000,
                                     .gpu_memory_total_bytes = 150'000'000'000,
                                     .gpu_clock_mhz = 1980,
                                     .gpu_memory_clock_mhz = 2619,
                                     .absent = {{"gpu_power_w", "Not Supported"}}}});
  std::string said = window.said();
  for (const char* part : {"cuda:0 busy 87 %", "our kernels 61 %", "50.0 of 150.0 GB", "1980 MHz",
                           "2619 MHz", "power -"})
    EXPECT_THAT(said, HasSubstr(part));
  window.shell.take({engine::Sampled{.t = 5'100'000'000,
                                     .period = 100'000'000,
                                     .device = "cuda:0",
                                     .thread_busy_percent = {62},
                                     .reason = "libnvidia-ml.so.1 was not found"}});
  said = window.said();
  EXPECT_THAT(said, HasSubstr("cuda:0 busy -"));
  EXPECT_THAT(said, HasSubstr("libnvidia-ml.so.1 was not found"));
  EXPECT_THAT(said, HasSubstr("our kernels 62 %"));
  EXPECT_THAT(said, Not(HasSubstr("power")));
}

TEST(Machine, explains_missing_samples) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  EXPECT_THAT(window.said(), HasSubstr("No samples yet."));
  const Folder folder;
  engine::Recorder recorder(folder / "run.pdrun");
  for (const engine::Event& event : streams::one_run("jacobi", 24)) recorder.push(event);
  recorder.close();
  window.shell.open(recorder.path());
  ASSERT_TRUE(waiting::until([&] { return !window.shell.reads(); },
                             [&] { window.gui.frame(window.shell); }));
  EXPECT_THAT(window.said(), HasSubstr("This recording contains no samples."));
}

TEST(Runs, recordings_are_listed_and_open_on_click) {
  const Folder folder;
  engine::Recorder recorder(folder / "before.pdrun");
  for (const engine::Event& event : streams::race({"ar", "jacobi"}, 24)) recorder.push(event);
  recorder.close();
  const std::string path = recorder.path();
  play("recordings", [&](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.settings().recents = {path};
    ctx->Yield(3);
    ctx->ItemClick("//Runs###live.runs/**/###recording");
    wait_until(ctx, [&] { return !shell.session().live_is_shown() && !shell.reads(); });
    IM_CHECK_EQ(shell.session().shown().source, path);
    IM_CHECK_EQ(shell.session().shown().timeline.runs().size(), std::size_t{2});
    // The recording shown is not listed.
    shell.show(ui::Screen::Live);
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("//Runs###live.runs/**/###recording"));
  });
}

TEST(PanelHead, every_panel_with_marks_has_a_legend) {
  play("heads", [](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.take(streams::race({"ar", "jacobi", "lookahead"}));
    const auto tells = [&](const char* screen, const char* panel) {
      const std::string window = std::string("###") + screen + "." + panel;
      ctx->WindowFocus(("//" + window).c_str());
      ctx->Yield(3);
      const ImGuiWindow* card = ImGui::FindWindowByName(window.c_str());
      IM_CHECK(card && card->DockNode && card->DockNode->HostWindow);
      ctx->SetRef(card->DockNode->HostWindow);
      ctx->MouseMove(("**/###marks_" + std::string(panel)).c_str());
      ctx->Yield(3);
      const ImGuiWindow* tip = ImGui::FindWindowByName("##Tooltip_00");
      IM_CHECK(tip && tip->Active && tip->Size.y > 20);
      put_mouse_away(ctx);
    };
    shell.selection().run = 3;
    for (const char* panel : {"text", "trajectory", "pool", "gantt", "numbers", "inspector"})
      tells("live", panel);
    shell.show(ui::Screen::Compare);
    ctx->Yield(3);
    for (const char* panel : {"gantt", "difference", "inspector"}) tells("compare", panel);
  });
}

// Returns the figure after the label "tokens / step", which may be shortened, and the letter of its truth.
std::string tokens_per_step_in(const std::string& said) {
  std::smatch figure;
  const std::regex wanted("tok(?:ens)? ?/ ?step (?:[a-zA-Z] )?([0-9.]+)");
  return std::regex_search(said, figure, wanted) ? figure.str(1) : "";
}

// Returns how often consecutive texts differ.
std::ptrdiff_t n_changes(const std::vector<std::string>& texts) {
  std::ptrdiff_t n = 0;
  for (std::size_t i = 1; i < texts.size(); ++i) n += texts[i] != texts[i - 1];
  return n;
}

TEST(Numbers, live_figures_change_at_most_ten_times_a_second) {
  DrawnWindow window;
  window.shell.show(ui::Screen::Live);
  const std::vector<engine::Event> events = streams::one_run("lookahead", 1000);
  std::vector<std::string> seen, exact;
  auto next = events.begin();
  for (int frame = 0; frame < 120; ++frame) {  // two seconds, with a step in each frame
    if (frame == 3) ImGui::SetWindowFocus("Numbers###live.numbers");
    const auto end = std::find_if(next, events.end(), [](const engine::Event& event) {
      return std::holds_alternative<engine::StepEnded>(event);
    });
    ASSERT_NE(end, events.end());
    window.shell.take(std::vector<engine::Event>(next, end + 1));
    next = end + 1;
    const std::string figure = tokens_per_step_in(window.gui.said(window.shell));
    if (figure.empty()) continue;
    seen.push_back(figure);
    exact.push_back(
        fmt::format("{:.2f}", window.shell.session().live().timeline.run(1)->tokens_per_step()));
  }
  EXPECT_GT(seen.size(), 100U);
  EXPECT_GT(n_changes(exact), 25);
  EXPECT_LE(n_changes(seen), 21);
  EXPECT_GE(n_changes(seen), 10);
  // Paused, the figures are those of the last step.
  window.shell.take({engine::Held{.held = true}});
  EXPECT_EQ(tokens_per_step_in(window.gui.said(window.shell)), exact.back());
}

}  // namespace

// Repeated races: figures by hand, the panels that show them, and the window that follows them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/timeline.h"
#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/set_stream.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/sets/repeats.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/following.h"

namespace ui {
namespace {

using namespace engine;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Nanoseconds kMs = 1'000'000;

// A lane that commits four tokens.
struct Lane {
  RunId run = 0;
  std::uint32_t race = 0;
  int lane = 0;
  const char* decoder = "ar";
  int n_steps = 4;
  Nanoseconds step = 10 * kMs;
  const char* ended_by = "length";
};

void add(std::vector<Event>& events, Nanoseconds& t, const Lane& lane, int repeat, int n_repeats) {
  events.push_back(RunStarted{.t = ++t,
                              .run = lane.run,
                              .race = lane.race,
                              .lane = lane.lane,
                              .model = 1,
                              .decoder = lane.decoder,
                              .place = {.set = 1, .repeat = repeat, .n_repeats = n_repeats}});
  for (int i = 0; i < lane.n_steps; ++i) {
    events.push_back(StepBegun{.t = ++t, .run = lane.run, .step = i, .compute = i * lane.step});
    Committed committed{.t = ++t, .run = lane.run, .step = i, .first_pos = 4 / lane.n_steps * i};
    committed.tokens.assign(static_cast<std::size_t>(4 / lane.n_steps), 1);
    committed.status.assign(committed.tokens.size(), TokenStatus::Plain);
    committed.origin.resize(committed.tokens.size());
    events.push_back(committed);
    events.push_back(
        StepEnded{.t = t += lane.step, .run = lane.run, .step = i, .forward = lane.step});
  }
  events.push_back(RunFinished{.t = ++t,
                               .run = lane.run,
                               .stop_reason = lane.ended_by,
                               .n_tokens = 4,
                               .n_steps = lane.n_steps});
}

Timeline timeline_of(const std::vector<Event>& events) {
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0)
      << (timeline.inconsistencies().empty() ? "" : timeline.inconsistencies()[0]);
  return timeline;
}

// Three whole repeats in which Jacobi takes 5, 10 and 20 ms a step, and a stopped one.
std::vector<Event> by_hand() {
  std::vector<Event> events{
      ModelLoaded{.model = 1, .name = "m", .vocab_size = 4, .pieces = {"a", "b", "c", "d"}}};
  Nanoseconds t = 100;
  for (int i = 0; i < 4; ++i) {
    const auto run = static_cast<RunId>(2 * i + 1);
    const auto race = static_cast<std::uint32_t>(i + 1);
    add(events, t, {.run = run, .race = race}, i, 4);
    add(events, t,
        {.run = run + 1,
         .race = race,
         .lane = 1,
         .decoder = "jacobi",
         .n_steps = 2,
         .step = (5 * kMs) << i,
         .ended_by = i == 3 ? "stopped" : "length"},
        i, 4);
    if (i == 0)
      events.push_back(Sampled{
          .t = t, .period = 100 * kMs, .device = "cpu", .stolen_percent = 2, .load_average = 1});
  }
  events.push_back(Sampled{
      .t = t, .period = 300 * kMs, .device = "cpu", .stolen_percent = 0, .load_average = 3});
  return events;
}

void expect_spread(const Spread& spread, double q1, double median, double q3) {
  EXPECT_NEAR(spread.q1, q1, 1e-9);
  EXPECT_NEAR(spread.median, median, 1e-9);
  EXPECT_NEAR(spread.q3, q3, 1e-9);
}

TEST(Repeats, figures_are_medians_with_quartiles) {
  const Timeline timeline = timeline_of(by_hand());
  const RepeatFigures jacobi = repeat_figures(timeline, *timeline.run(4));
  EXPECT_EQ(jacobi.n_done, 3) << "the stopped repeat does not count";
  EXPECT_EQ(jacobi.n_all, 4);
  expect_spread(jacobi.step_ms, 7.5, 10, 15);              // of 5, 10, 20
  expect_spread(jacobi.tokens_per_second, 150, 200, 300);  // 4 tokens in 10, 20, 40 ms
  expect_spread(jacobi.tokens_per_step, 2, 2, 2);
  expect_spread(jacobi.speedup, 1.5, 2, 3);      // 40 ms / 10, 20, 40 ms
  EXPECT_DOUBLE_EQ(jacobi.stolen_percent, 0.5);  // (2 * 100 + 0 * 300) / 400
  EXPECT_DOUBLE_EQ(jacobi.load_average, 2.5);    // (1 * 100 + 3 * 300) / 400
  EXPECT_EQ(repeat_words(jacobi), "median of 3, 4 requested (q1 to q3)");
  EXPECT_EQ(spread_words(jacobi.tokens_per_second), "200 (150 to 300)");
  EXPECT_EQ(stolen_words(jacobi), "0.5 %");
  EXPECT_EQ(load_words(jacobi), "2.5");
  EXPECT_EQ(repeat_figures(timeline, *timeline.run(1)).n_done, 4) << "plain decoding was whole";
}

TEST(Repeats, a_run_alone_has_no_repeats) {
  const Timeline timeline = timeline_of(streams::race({"ar", "jacobi"}));
  EXPECT_EQ(repeats_of(timeline, *timeline.run(2)).size(), 1u);
  EXPECT_EQ(repeat_figures(timeline, *timeline.run(2)).n_all, 1);
  EXPECT_EQ(stolen_words({}), "-");
  EXPECT_EQ(load_words({}), "-");
  EXPECT_EQ(spread_words({}), "-");
}

TEST(Repeats, panels_show_the_median_and_the_load) {
  DrawnWindow window;
  window.shell.show(Screen::Compare);
  window.shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 3}));
  std::string text = window.said();
  EXPECT_THAT(text, HasSubstr("median of 3 (q1 to q3)"));
  EXPECT_THAT(text, HasSubstr("stolen, load"));
  EXPECT_THAT(text, HasSubstr("0.5 %, 1.5"));
  EXPECT_THAT(text, HasSubstr("repeat 3 of 3"));
  window.shell.show(Screen::Live);
  text = window.said();
  EXPECT_THAT(text, AllOf(HasSubstr("median of 3 (q1 to q3)"), HasSubstr("load 1.5")));
}

// Two repeats in which the machine is loaded only while plain decoding runs.
std::vector<Event> with_load_of_the_first_lane() {
  std::vector<Event> events{
      ModelLoaded{.model = 1, .name = "m", .vocab_size = 4, .pieces = {"a", "b", "c", "d"}}};
  Nanoseconds t = 100;
  const auto sample = [&](double stolen, double load) {
    events.push_back(Sampled{
        .t = t, .period = kMs, .device = "cpu", .stolen_percent = stolen, .load_average = load});
  };
  for (int i = 0; i < 2; ++i) {
    const auto run = static_cast<RunId>(2 * i + 1);
    const auto race = static_cast<std::uint32_t>(i + 1);
    add(events, t, {.run = run, .race = race}, i, 2);
    sample(10, 4);
    add(events, t, {.run = run + 1, .race = race, .lane = 1, .decoder = "jacobi", .n_steps = 2}, i,
        2);
    sample(0, 1);
  }
  return events;
}

TEST(Repeats, each_figure_has_the_load_of_its_lane) {
  DrawnWindow window;
  window.shell.show(Screen::Compare);
  window.shell.take(with_load_of_the_first_lane());
  const std::string text = window.said();
  const auto row = [](const std::string& plain, const std::string& jacobi) {
    return fmt::format("q1 to q3 stolen, load | {} {} to {} 10.0 %, 4.0 | {} {} to {} 0.0 %, 1.0 |",
                       plain, plain, plain, jacobi, jacobi, jacobi);
  };
  EXPECT_THAT(text, HasSubstr("repeat 2 of 2: | | A | B |")) << "the figures of one repeat";
  EXPECT_THAT(text, HasSubstr(row("100", "200"))) << "tokens / s";
  EXPECT_THAT(text, HasSubstr(row("10.0", "10.0"))) << "ms / step";
  EXPECT_THAT(text, HasSubstr(row("1.00", "2.00"))) << "tokens / step, and the speed-up";
}

TEST(Repeats, figures_are_whole_in_a_small_window) {
  for (const int scale : {100, 150}) {
    SCOPED_TRACE(scale);
    DrawnWindow window;
    ImGui::GetIO().DisplaySize = {1280, 720};
    window.shell.settings().scale_percent = scale;
    window.shell.show(Screen::Compare);
    window.shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 3}));
    window.said();
    ImGui::SetWindowFocus("Difference###compare.difference");
    EXPECT_THAT(window.said(), HasSubstr("stolen, load"));
    int n_glyphs = 0;
    for (const glyphs::Glyph& glyph : glyphs::drawn()) {
      const ImGuiWindow* its = ImGui::FindWindowByName(glyph.window.c_str());
      if (!glyph.window.starts_with("Difference###") || its->ScrollMax.x > 0) continue;
      EXPECT_FALSE(is_cut_sideways(glyph)) << glyph.window;
      ++n_glyphs;
    }
    EXPECT_GT(n_glyphs, 100);
    EXPECT_THAT(glyphs::covering(glyphs::drawn()), testing::IsEmpty());
  }
}

TEST(Repeats, a_recording_shows_the_same_figures) {
  const test::Folder folder;
  const std::string path = folder / "repeats.pdrun";
  {
    Recorder recorder(path);
    for (const Event& event : streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 3}))
      recorder.push(event);
  }
  DrawnWindow window;
  window.shell.open(path);
  for (int i = 0; i < 200 && window.shell.reads(); ++i) window.gui.frame(window.shell);
  EXPECT_THAT(window.said(), HasSubstr("repeat 3 of 3"));
  window.shell.show(Screen::Live);
  EXPECT_THAT(window.said(),
              AllOf(HasSubstr("median of 3 (q1 to q3)"), HasSubstr("stolen 0.5 %, load 1.5")));
}

TEST(Repeats, a_race_without_repeats_has_no_such_words) {
  DrawnWindow window;
  window.shell.show(Screen::Compare);
  window.shell.take(streams::race({"ar", "jacobi"}));
  EXPECT_THAT(window.said(), Not(HasSubstr("median of")));
}

TEST(Repeats, the_window_follows_the_set) {
  DrawnWindow window;
  Shell& shell = window.shell;
  shell.show(Screen::Compare);
  shell.take(streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_repeats = 5, .n_races = 1}));
  EXPECT_EQ(shell.selection().race, 1u);
  EXPECT_TRUE(is_going(shell.session().live().timeline)) << "between two races";
  EXPECT_TRUE(shell.measures_set());
  EXPECT_FALSE(shell.may_close()) << "a sheet asks first";
  const auto start = [&](RunId run, std::uint32_t race, int lane, int repeat) {
    shell.take({RunStarted{.run = run,
                           .race = race,
                           .lane = lane,
                           .place = {.set = 1, .repeat = repeat, .n_repeats = 5}}});
  };
  shell.selection().run = 2;
  start(11, 11, 0, 1), start(12, 11, 1, 1);
  EXPECT_EQ(shell.selection().race, 11u);
  EXPECT_EQ(shell.selection().run, 12u) << "the same lane of the next race";
  shell.selection().race = 1;
  start(13, 12, 0, 2), start(14, 12, 1, 2);
  EXPECT_EQ(shell.selection().race, 1u) << "the user selected it";
  shell.take({RunFinished{.run = 11}, RunFinished{.run = 12}, RunFinished{.run = 13},
              RunFinished{.run = 14}, Phase{.name = "set", .done = 5, .total = 5}});
  EXPECT_FALSE(is_going(shell.session().live().timeline));
  EXPECT_FALSE(shell.measures_set());
}

TEST(Repeats, the_place_in_a_set_has_words) {
  EXPECT_EQ(set_words({}), "");
  EXPECT_EQ(set_words({.set = 1, .repeat = 2, .n_repeats = 10}), "repeat 3 of 10");
  EXPECT_EQ(set_words({.set = 1, .prompt = 1, .n_prompts = 5, .repeat = 0, .n_repeats = 2}),
            "prompt 2/5, repeat 1/2");
}

TEST(Repeats, setup_requests_them) {
  scripted::play("repeat", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    ctx->Yield(2);
    ctx->ItemInputValue("//Setup###live.setup/##repeat", 250);
    ctx->Yield(2);
    IM_CHECK_EQ(stage.shell->form().n_repeats, kMaxRepeats);
    ctx->ItemInputValue("//Setup###live.setup/##repeat", 10);
    ctx->ItemClick("//##top/###run");
    scripted::wait_until(ctx, [&] { return !stage.replay->asked.empty(); });
    IM_CHECK_EQ(stage.replay->started.n_repeats, 10);
  });
}

}  // namespace
}  // namespace ui

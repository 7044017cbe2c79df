// The measured range of the timeline restricts the panel Numbers to its steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/numbers.h"

namespace ui {
namespace {

// A run whose step i commits i + 1 tokens and takes 10 ms.
engine::Timeline counting_run(int n_steps) {
  using namespace engine;
  constexpr Nanoseconds kStep = 10'000'000;
  Timeline timeline;
  timeline.apply(ModelLoaded{.model = 1, .vocab_size = 2, .pieces = {"a", "b"}});
  timeline.apply(RunStarted{.run = 1, .model = 1, .decoder = "jacobi"});
  int pos = 0;
  for (int i = 0; i < n_steps; ++i) {
    timeline.apply(StepBegun{.t = i * kStep, .run = 1, .step = i, .compute = i * kStep});
    Committed committed{.t = i * kStep, .run = 1, .step = i, .first_pos = pos};
    committed.tokens.assign(static_cast<std::size_t>(i + 1), 1);
    committed.status.assign(committed.tokens.size(), TokenStatus::Plain);
    committed.origin.resize(committed.tokens.size());
    pos += i + 1;
    timeline.apply(committed);
    timeline.apply(StepEnded{.t = (i + 1) * kStep, .run = 1, .step = i, .forward = kStep});
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  return timeline;
}

TEST(NumbersRange, figures_cover_only_the_steps_in_it) {
  const engine::Timeline timeline = counting_run(6);
  const engine::RunRecord& run = *timeline.run(1);
  RunTimes times;
  extend(times, run);
  // Steps 2 and 3 end at 30 and 40 ms.
  const StepRange range = steps_ending_in(ClockKind::Compute, times, 45e6, 25e6, 0);
  EXPECT_EQ(range, StepRange(2, 4));
  const Numbers numbers = numbers_of(timeline, run, times, range);
  EXPECT_EQ(numbers.tokens_per_step.value, "3.50");                    // (3 + 4) / 2
  EXPECT_EQ(numbers.tokens_per_second.value, short_number(7 / 0.02));  // 7 tokens in 20 ms
  EXPECT_EQ(numbers.speedup.value, "-");
  EXPECT_EQ(steps_in_set(times, range, StepSet::All), (std::vector<engine::StepId>{2, 3}));
  EXPECT_EQ(steps_that_committed(times, range, 3), std::vector<engine::StepId>{2});
  EXPECT_TRUE(steps_that_committed(times, range, 5).empty());
  EXPECT_EQ(series_of(times, range, Series::TokensPerStep, 60), (std::vector<float>{3, 4}));
  Tally tally;
  advance(tally, run, range);
  EXPECT_EQ(tally.committed, (std::vector<int>{0, 0, 0, 1, 1}));
  advance(tally, run, {2, 5});
  EXPECT_EQ(tally.committed, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  advance(tally, run, 2);
  EXPECT_EQ(tally.committed, (std::vector<int>{0, 1, 1})) << "counted again";
  EXPECT_EQ(numbers_of(timeline, run, times, {9, 12}).tokens_per_step.value, "-");
}

TEST(NumbersRange, figures_of_the_whole_run_are_absent_from_a_part) {
  engine::Timeline timeline = counting_run(6);
  timeline.apply(engine::RunFinished{
      .t = 60'000'000,
      .run = 1,
      .n_tokens = 21,
      .n_steps = 6,
      .metrics = {{"sized_steps", 6}, {"windows", 2}, {"first_hits", 1}, {"window_slots", 4}}});
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const engine::RunRecord& run = *timeline.run(1);
  RunTimes times;
  extend(times, run);
  const auto labels = [&](StepRange range) {
    std::vector<std::string> all;
    for (const Figure& one : numbers_of(timeline, run, times, range).more) all.push_back(one.label);
    return all;
  };
  using testing::AllOf, testing::Contains, testing::Not;
  EXPECT_THAT(labels(6), AllOf(Contains("time to first token"), Contains("chosen sizes"),
                               Contains("first guess right")));
  EXPECT_THAT(labels(3), AllOf(Contains("time to first token"), Not(Contains("chosen sizes")),
                               Not(Contains("first guess right"))));
  EXPECT_THAT(labels({1, 6}),
              AllOf(Not(Contains("time to first token")), Not(Contains("chosen sizes"))));
}

TEST(NumbersRange, a_part_from_the_first_step_on_has_no_speedup) {
  DrawnWindow window;
  window.shell.take(streams::race({"ar", "lookahead"}));
  window.shell.show(Screen::Live);
  window.shell.selection().run = 2;
  EXPECT_THAT(window.said(), testing::HasSubstr("speed-up vs run 1"));
  TimeRange& range = window.shell.state<TimelineView>().range;
  range.range0 = 0;
  range.range1 = window.shell.session().shown().timeline.run(2)->decode_compute() / 2.0;
  EXPECT_THAT(window.said(), testing::Not(testing::HasSubstr("speed-up vs run 1")));
  range.range1 = range.range0;
  EXPECT_THAT(window.said(), testing::HasSubstr("speed-up vs run 1"));
}

TEST(NumbersRange, a_range_belongs_to_its_run) {
  using testing::HasSubstr, testing::Not;
  DrawnWindow window;
  window.shell.take(streams::race({"ar", "lookahead"}));
  window.shell.show(Screen::Live);
  window.shell.selection().run = 1;
  EXPECT_THAT(window.said(), Not(HasSubstr("Measured range:")));
  TimeRange& range = window.shell.state<TimelineView>().range;
  const auto middle =
      static_cast<double>(window.shell.session().shown().timeline.run(1)->decode_compute() / 2);
  range.range0 = 0;
  range.range1 = middle;
  EXPECT_THAT(window.said(), HasSubstr("Measured range:"));
  window.shell.selection().run = 2;
  EXPECT_THAT(window.said(), Not(HasSubstr("Measured range:")));
  EXPECT_EQ(range.range0, range.range1);
  window.shell.selection().run = 1;
  EXPECT_THAT(window.said(), HasSubstr("Measured range:"));
  EXPECT_EQ(range.range1, middle);
  // A range that was removed does not come back.
  range.forget_measured();
  window.shell.selection().run = 2;
  window.said();
  window.shell.selection().run = 1;
  window.said();
  EXPECT_EQ(range.range0, range.range1);
}

TEST(NumbersRange, a_range_of_a_race_belongs_to_it) {
  DrawnWindow window;
  window.shell.take(streams::race({"ar", "lookahead"}));
  window.shell.show(Screen::Compare);
  window.said();
  TimeRange& range = window.shell.state<TimelineView>().range;
  range.range0 = 1e6;
  range.range1 = 5e6;
  window.shell.selection().run = 2;
  window.said();
  EXPECT_EQ(range.range1, 5e6) << "another lane of the race";
  window.shell.show(Screen::Live);
  window.said();
  EXPECT_EQ(range.range0, range.range1) << "the screen Live shows a run";
  window.shell.take(streams::race({"ar", "jacobi"}, 96, 3, 2));
  window.shell.show(Screen::Compare);
  window.shell.selection().race = 2;
  window.said();
  EXPECT_EQ(range.range0, range.range1) << "another race";
  window.shell.selection().race = 1;
  window.said();
  EXPECT_EQ(range.range0, 1e6);
  EXPECT_EQ(range.range1, 5e6);
  // The runs chosen in Runs have a range of their own.
  window.shell.selection().compared = {1, 3};
  window.said();
  EXPECT_EQ(range.range0, range.range1);
}

TEST(NumbersRange, another_clock_removes_the_ranges_of_all_runs) {
  TimelineView view;
  view.show_range_of({.run = 1});
  view.range.range1 = 5e6;
  view.show_range_of({.run = 2});
  view.range.range1 = 7e6;
  view.choose_clock(ClockKind::Step);
  EXPECT_EQ(view.range.range1, 0);
  view.show_range_of({.run = 1});
  EXPECT_EQ(view.range.range1, 0);
}

TEST(NumbersRange, the_panel_says_so_and_clears_it) {
  scripted::play("numbers_range", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    scripted::run_to_the_end(ctx, stage);
    const auto clear = "//Numbers###live.numbers/###clear_range";
    IM_CHECK(!ctx->ItemExists(clear));
    ctx->KeyPress(ImGuiKey_LeftArrow);
    ctx->KeyPress(ImGuiKey_R);
    ctx->Yield(3);
    IM_CHECK(ctx->ItemExists(clear));
    const TimeRange& range = stage.shell->state<TimelineView>().range;
    IM_CHECK(range.range0 != range.range1);
    ctx->ItemClick(clear);
    ctx->Yield(2);
    IM_CHECK_EQ(range.range0, range.range1);
    IM_CHECK(!ctx->ItemExists(clear));
  });
}

}  // namespace
}  // namespace ui

// The timeline of a run: levels of detail, counters, arrows, the order of lanes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/support/work_time.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/inks.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/time/counters.h"
#include "ui/prepare/time/flow_arrows.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/lane_order.h"
#include "ui/widgets/draw.h"

namespace {

using namespace ui;
using engine::Nanoseconds;

constexpr std::array kLanes{LaneKind::Target, LaneKind::Propose, LaneKind::Verify,
                            LaneKind::Commit, LaneKind::PoolHit, LaneKind::PoolInsert};

engine::RunLod lod_of(const engine::RunRecord& run, ClockKind clock = ClockKind::Compute) {
  engine::RunLod lod(engine_clock(clock));
  lod.update(run);
  return lod;
}

ClockView whole(const RunTimes& times, float width) {
  return {ClockKind::Compute, 0, 0, times.end_compute(), width};
}

/// A lookup run of `n` steps with six events each.
class LongRun {
 public:
  explicit LongRun(int hit_step = -1) : hit_step_(hit_step) {}

  std::vector<engine::Event> begin() const {
    engine::ModelLoaded model{.t = 1, .model = 1, .name = "toy", .vocab_size = 100};
    for (int i = 0; i < 100; ++i) model.pieces.push_back(std::to_string(i));
    return {
        model,
        engine::RunStarted{
            .t = 2, .run = 1, .model = 1, .decoder = "lookahead", .prompt_tokens = {1, 2, 3, 4}}};
  }

  std::vector<engine::Event> steps(int n) {
    std::vector<engine::Event> events;
    for (int i = 0; i < n; ++i) push_step(events);
    return events;
  }

 private:
  void push_step(std::vector<engine::Event>& events) {
    using engine::RowFate, engine::RowTag, engine::TokenStatus;
    const int kept = 1 + static_cast<int>(random_() % 3);
    const bool hit = hit_step_ < 0 ? kept > 1 : step_ == hit_step_;
    const Nanoseconds forward = 4'000'000 + static_cast<Nanoseconds>(random_() % 2'000'000);
    const RowTag guess{RowTag::Kind::Guess, 0, 0}, current;
    engine::Drafted drafted{.t = t_, .run = 1, .step = step_};
    drafted.tree.token = {1, 2, 3};
    drafted.tree.parent = {-1, 0, 1};
    drafted.tree.tag = {current, guess, guess};
    engine::Verified verified{.t = t_ + forward, .run = 1, .step = step_};
    verified.fate = {RowFate::Context, hit ? RowFate::Accepted : RowFate::Rejected,
                     RowFate::Unused};
    verified.picked = {2, 3, 4};
    verified.logp = verified.margin = {-1, -1, -1};
    verified.n_proposed = 2, verified.n_unused = 1;
    (hit ? verified.n_accepted : verified.n_rejected) = 1;
    const Nanoseconds own = 30'000 + forward + 20'000 + 10'000;
    std::vector<TokenStatus> status(kept, TokenStatus::Bonus);
    std::vector<RowTag> origin(kept, current);
    if (hit) status[0] = TokenStatus::Accepted, origin[0] = guess;
    events.push_back(engine::StepBegun{t_, 1, step_, compute_, pos_, 3});
    events.push_back(std::move(drafted));
    events.push_back(std::move(verified));
    engine::PoolChanged pool{.t = t_ + own, .run = 1, .step = step_, .n_ngrams = step_ + 1};
    pool.added.push_back({.first = 1, .rest = {2, 3}, .born = step_});
    events.push_back(std::move(pool));
    events.push_back(engine::Committed{.t = t_ + own,
                                       .run = 1,
                                       .step = step_,
                                       .first_pos = pos_,
                                       .tokens = std::vector<engine::TokenId>(kept, 2),
                                       .status = status,
                                       .origin = origin});
    events.push_back(
        engine::StepEnded{t_ + own, 1, step_, 30'000, forward, 20'000, 10'000, pos_ + kept});
    t_ += own + 15'000;
    compute_ += own;
    pos_ += kept;
    ++step_;
  }

  std::mt19937 random_{7};
  int hit_step_;
  engine::StepId step_ = 0;
  Nanoseconds t_ = 10, compute_ = 0;
  int pos_ = 4;
};

std::size_t blocks_of_all_lanes(const engine::RunLod& lod,
                                const RunTimes& times,
                                const ClockView& view) {
  std::size_t n = 0;
  for (const LaneKind lane : kLanes) {
    const std::size_t blocks = blocks_in_view(lod, times, lane, view).size();
    EXPECT_LE(blocks, static_cast<std::size_t>(view.width)) << lane_name(lane);
    n += blocks;
  }
  return n;
}

// Checks that the blocks of `n` steps, from step `first` on, have the recorded times.
void expect_exact(const engine::RunRecord& run,
                  const engine::RunLod& lod,
                  const RunTimes& times,
                  std::size_t first,
                  std::size_t n) {
  ClockView view{ClockKind::Compute, 0, times.steps[first].compute0,
                 times.steps[first + n - 1].compute1, 1500};
  for (const LaneKind lane : {LaneKind::Target, LaneKind::Propose, LaneKind::Verify}) {
    std::size_t i = first;
    for (const LaneBlock& block : blocks_in_view(lod, times, lane, view)) {
      if (block.step < static_cast<engine::StepId>(first))
        continue;  // it ends at the start of the view
      if (i == first + n) break;
      ASSERT_FALSE(block.is_bucket);
      ASSERT_EQ(block.step, static_cast<engine::StepId>(i)) << lane_name(lane);
      const auto part = part_of_step(run, times, i, lane, view);
      ASSERT_TRUE(part);
      EXPECT_EQ(block.t0, part->first);
      EXPECT_EQ(block.t1, part->second);
      const engine::StepHead step = run.steps.head(i);
      if (lane == LaneKind::Target) {
        EXPECT_EQ(block.t1 - block.t0, static_cast<double>(step.ended.forward));
        EXPECT_EQ(block.n_tokens, step.n_tokens);
      }
      ++i;
    }
    EXPECT_EQ(i, first + n) << lane_name(lane);
  }
}

TEST(Gantt, frame_cost_at_a_million_events_is_bounded) {
  headless::Headless gui;
  engine::CommandQueue commands;
  const Catalog catalog = streams::catalog();
  Shell shell(catalog, commands, "");
  shell.show(Screen::Live);
  LongRun made;
  shell.take(made.begin());
  const engine::Timeline& timeline = shell.session().shown().timeline;
  while (timeline.n_events() < 1'000'000) shell.take(made.steps(5'000));
  ASSERT_EQ(timeline.n_inconsistent(), 0) << timeline.inconsistencies()[0];
  const engine::RunRecord& run = *timeline.run(1);
  const RunTimes times = times_of(run);
  engine::RunLod lod(engine::Clock::Compute);
  const double build_ms = ::test::worked_ms([&] { lod.update(run); });
  // Without new events the levels of detail do not change.
  EXPECT_LT(::test::least_worked_ms(20, [&] { lod.update(run); }), build_ms / 100);

  const ClockView all = whole(times, 1500);
  // A hundred times as many events need about the same work; the test compares two measured times.
  LongRun little;
  engine::Timeline few;
  for (const engine::Event& event : little.begin()) few.apply(event);
  for (const engine::Event& event : little.steps(1'700)) few.apply(event);
  const RunTimes few_times = times_of(*few.run(1));
  engine::RunLod few_lod(engine::Clock::Compute);
  few_lod.update(*few.run(1));
  std::size_t n_blocks = 0;
  const auto prepare = [&n_blocks](const engine::RunLod& of, const RunTimes& at) {
    const ClockView whole_of_it = whole(at, 1500);
    n_blocks = blocks_of_all_lanes(of, at, whole_of_it) + step_columns(at, whole_of_it).size();
    overview(at, whole_of_it, 0, at.end_compute(), 200);
  };
  const double few_ms = ::test::least_worked_ms(20, [&] { prepare(few_lod, few_times); });
  const double all_ms = ::test::least_worked_ms(20, [&] { prepare(lod, times); });
  EXPECT_GT(n_blocks, 500u);
  EXPECT_GT(times.steps.size(), 90 * few_times.steps.size());
  EXPECT_LT(all_ms, 20 * few_ms) << few_ms << " ms for a hundredth of the events";
  for (double zoom = 1; zoom < 1e6; zoom *= 4) {
    ClockView view = all;
    view.t0 = times.end_compute() / 3;
    view.t1 = view.t0 + times.end_compute() / zoom;
    EXPECT_LE(blocks_of_all_lanes(lod, times, view), kLanes.size() * 1500) << "zoom " << zoom;
    EXPECT_LE(step_columns(times, view).size(), 502u) << "zoom " << zoom;
  }
  expect_exact(run, lod, times, times.steps.size() / 2, 40);

  // The number of vertices is bounded by columns of pixels times rows.
  for (int i = 0; i < 4; ++i) gui.frame(shell);
  const ImGuiWindow* window = ImGui::FindWindowByName("Timeline###live.gantt");
  ASSERT_NE(window, nullptr);
  const auto columns = static_cast<int>(window->Size.x);
  constexpr int kRows = 10, kCorners = 6, kWords = 6'000;
  EXPECT_GT(window->DrawList->VtxBuffer.Size, 4 * 500);
  EXPECT_LT(window->DrawList->VtxBuffer.Size, kRows * kCorners * columns + kWords);
}

TEST(Gantt, buckets_keep_all_steps_and_rejections) {
  const auto timeline = timeline_of(streams::one_run("jacobi", 6000));
  const engine::RunRecord& run = *timeline.run(1);
  const RunTimes times = times_of(run);
  const engine::RunLod lod = lod_of(run);
  ASSERT_GT(times.steps.size(), 2000u);
  std::int64_t n_rejecting = 0;
  for (const StepSpan& s : times.steps) n_rejecting += s.n_rejected > 0;
  for (const float width : {100.0f, 900.0f, 1e6f}) {
    const auto blocks = blocks_in_view(lod, times, LaneKind::Target, whole(times, width));
    std::int64_t n = 0, rejected = 0;
    for (const LaneBlock& b : blocks) n += b.n_slices, rejected += b.n_rejected > 0 && !b.is_bucket;
    for (const LaneBlock& b : blocks) rejected += b.is_bucket ? b.n_rejected : 0;
    EXPECT_EQ(n, static_cast<std::int64_t>(times.steps.size()));
    EXPECT_EQ(rejected, n_rejecting);
    if (width < 1000) {
      EXPECT_LE(blocks.size(), std::max(64.0f, width / 3 + 2));
    }
    EXPECT_EQ(blocks.front().is_bucket, width < 1000);
    EXPECT_TRUE(std::ranges::is_sorted(blocks, {}, &LaneBlock::t0));
  }
}

TEST(Gantt, pool_hit_stays_visible_in_a_dense_lane) {
  LongRun made(700);
  std::vector<engine::Event> events = made.begin();
  for (engine::Event& event : made.steps(3000)) events.push_back(std::move(event));
  const auto timeline = timeline_of(events);
  const RunTimes times = times_of(*timeline.run(1));
  const auto blocks =
      blocks_in_view(lod_of(*timeline.run(1)), times, LaneKind::PoolHit, whole(times, 300));
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_TRUE(blocks[0].is_bucket);
  EXPECT_LE(blocks[0].t0, times.steps[700].compute1);
  EXPECT_GE(blocks[0].t1, times.steps[700].compute0);
}

TEST(Gantt, bucket_has_shares_of_work_and_waste) {
  LongRun made;
  std::vector<engine::Event> events = made.begin();
  for (engine::Event& event : made.steps(4000)) events.push_back(std::move(event));
  const auto timeline = timeline_of(events);
  const engine::RunRecord& run = *timeline.run(1);
  const RunTimes times = times_of(run);
  double busy = 0, waste = 0;
  for (const LaneBlock& b :
       blocks_in_view(lod_of(run), times, LaneKind::Target, whole(times, 500))) {
    busy += b.busy * (b.t1 - b.t0);
    waste += b.wasted * b.busy * (b.t1 - b.t0);
  }
  EXPECT_NEAR(busy, times.total.forward, 0.01 * times.total.forward);
  EXPECT_NEAR(waste, times.total.waste, 0.02 * times.total.forward);
}

TEST(Gantt, position_clock_length_is_committed_tokens) {
  const auto timeline = timeline_of(streams::one_run("prompt-lookup"));
  const engine::RunRecord& run = *timeline.run(1);
  const RunTimes times = times_of(run);
  const engine::RunLod lod = lod_of(run, ClockKind::Position);
  const double begin = run.first_generated(), end = begin + 96;
  EXPECT_EQ(begin_on(ClockKind::Position, times, 0, 0), begin);
  EXPECT_EQ(end_on(ClockKind::Position, times, times.steps.size() - 1, 0), end);
  const ClockView view{ClockKind::Position, 0, begin, end, 2000};
  const auto blocks = blocks_in_view(lod, times, LaneKind::Target, view);
  ASSERT_EQ(blocks.size(), times.steps.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].t0, times.steps[i].position);
    EXPECT_LE(blocks[i].t1, times.steps[i].position + times.steps[i].n_tokens);
    EXPECT_GT(blocks[i].t1 - blocks[i].t0, 0.9 * times.steps[i].n_tokens);
  }
  EXPECT_EQ(tick_labels(view, std::array{40.0, 50.0}).front(), "40");
  EXPECT_EQ(length_words(ClockKind::Position, 12), "12 positions");
  const auto bars = overview(times, view, begin, end, 12);
  for (const float tokens : bars) EXPECT_NEAR(tokens, 8, 8);
  float sum = 0;
  for (const float tokens : bars) sum += tokens;
  EXPECT_EQ(sum, 96);
}

TEST(Gantt, normalised_clock_aligns_start_and_end) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  for (const engine::RunRecord& run : timeline.runs()) {
    const RunTimes times = times_of(run);
    const engine::RunLod lod = lod_of(run, ClockKind::Normalised);
    const std::size_t last = times.steps.size() - 1;
    EXPECT_EQ(begin_on(ClockKind::Normalised, times, 0, 0), 0);
    EXPECT_DOUBLE_EQ(end_on(ClockKind::Normalised, times, last, 0), 100);
    const ClockView view{ClockKind::Normalised, 0, 0, 100, 2000};
    const auto blocks = blocks_in_view(lod, times, LaneKind::Target, view);
    ASSERT_EQ(blocks.size(), times.steps.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const double begin = begin_on(ClockKind::Normalised, times, i, 0);
      const double end = end_on(ClockKind::Normalised, times, i, 0);
      EXPECT_GE(blocks[i].t0, begin);
      EXPECT_LE(blocks[i].t1, end);
      const auto part = part_of_step(run, times, i, LaneKind::Target, view);
      ASSERT_TRUE(part);
      EXPECT_EQ(part->first, blocks[i].t0);
    }
    // A time within a step is converted to the clock and back.
    const StepSpan& step = times.steps[last / 2];
    const double middle = (step.compute0 + step.compute1) / 2;
    const double at = on_clock(ClockKind::Normalised, times, middle, 0);
    EXPECT_NEAR(at, 100 * middle / times.end_compute(), 1e-9);
    EXPECT_NEAR(to_compute(ClockKind::Normalised, times, at, 0), middle, 1e-3);
    const StepSums all = sums_between(times, view, 0, 100);
    EXPECT_EQ(all.tokens, 96);
  }
  const ClockView view{ClockKind::Normalised, 0, 0, 10, 900};
  EXPECT_EQ(tick_labels(view, std::array{7.5, 8.0}).front(), "7.5 %");
  EXPECT_EQ(length_words(ClockKind::Normalised, 12.5), "12.5 % of the run");
  const RunTimes nothing;
  EXPECT_EQ(to_compute(ClockKind::Normalised, nothing, 50, 0), 50);
}

TEST(Gantt, labels_of_neighbouring_ticks_differ) {
  for (const ClockKind clock : {ClockKind::Wall, ClockKind::Compute, ClockKind::Step,
                                ClockKind::Position, ClockKind::Normalised}) {
    for (double range = closest_range(clock); range < 1e11; range *= 1.7) {
      for (const double t0 : {0.0, -range / 3, 61.0, 3.2e9}) {
        if (t0 > 1e3 && clock == ClockKind::Normalised) continue;  // a run has 100 %
        for (const float width : {300.0f, 900.0f, 3840.0f}) {
          const ClockView view{clock, 0, t0, t0 + range, width};
          const auto ticks = ruler_ticks(view, 84);
          const auto labels = tick_labels(view, ticks);
          ASSERT_EQ(labels.size(), ticks.size());
          for (std::size_t i = 1; i < labels.size(); ++i)
            ASSERT_NE(labels[i], labels[i - 1]) << clock_name(clock) << ", range " << range;
        }
      }
    }
  }
}

TEST(Gantt, labels_of_short_ranges_are_small_units) {
  const ClockView us{ClockKind::Compute, 0, 0, 5000, 900}, ns{ClockKind::Compute, 0, 0, 1000, 900};
  EXPECT_EQ(tick_labels(us, std::array{0.0, 500.0}),
            (std::vector<std::string>{"0.0 us", "0.5 us"}));
  EXPECT_EQ(tick_labels(ns, std::array{0.0, 100.0}), (std::vector<std::string>{"0 ns", "100 ns"}));
  const ClockView ms{ClockKind::Compute, 0, 0, 2.5e5, 3840};
  EXPECT_EQ(tick_labels(ms, std::array{1e4, 2e4}),
            (std::vector<std::string>{"0.01 ms", "0.02 ms"}));
}

TEST(Gantt, an_empty_axis_has_no_labels) {
  ClockView view{ClockKind::Compute, 0, 0, 1.05, 900};
  view.empty = true;
  const auto ticks = ruler_ticks(view, 84);
  EXPECT_GT(ticks.size(), 1u);
  EXPECT_EQ(tick_labels(view, ticks), std::vector<std::string>(ticks.size()));
}

TEST(Gantt, an_empty_run_has_nothing_to_draw) {
  EXPECT_TRUE(
      blocks_in_view(engine::RunLod(engine::Clock::Compute), {}, LaneKind::Target, {}).empty());
  EXPECT_TRUE(step_columns({}, {}).empty());
  EXPECT_EQ(overview({}, {}, 0, 0, 4), (std::vector<float>(4)));
}

TEST(Counters, extremes_match_the_values) {
  std::mt19937 random(3);
  std::vector<float> values;
  Extremes extremes;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(static_cast<float>(random() % 1000));
    extremes.push(values.back());
    // The values are queried while the list grows, so the last block of values is incomplete.
    const std::size_t last = 1 + random() % values.size(), first = random() % last;
    const auto [low, high] = std::minmax_element(values.begin() + static_cast<long>(first),
                                                 values.begin() + static_cast<long>(last));
    ASSERT_EQ(extremes.of(first, last), std::pair(*low, *high)) << first << " to " << last;
  }
  EXPECT_EQ(extremes.of(0, values.size()).second, extremes.highest());
  EXPECT_THROW(extremes.of(5, 5), engine::ContractError);
}

TEST(Counters, count_rows_tokens_cache_and_pool) {
  const auto timeline = timeline_of(streams::one_run("lookahead"));
  const engine::RunRecord& run = *timeline.run(1);
  RunCounters counters;
  extend(counters, run);
  ASSERT_EQ(counters.rows.size(), run.steps.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const engine::StepRecord step = run.steps[i];
    EXPECT_EQ(counters.rows.at(i), static_cast<float>(step.drafted.tree.n_rows()));
    EXPECT_EQ(counters.tokens.at(i), static_cast<float>(step.committed.tokens.size()));
    EXPECT_EQ(counters.of(LaneKind::Cache).at(i), static_cast<float>(step.ended.kv_len));
    EXPECT_EQ(counters.of(LaneKind::PoolSize).at(i), static_cast<float>(step.pool->n_ngrams));
  }
}

TEST(Counters, choices_of_the_decoder_are_a_counter) {
  std::vector<engine::Event> events = streams::one_run("prompt-lookup");
  for (engine::Event& event : events)
    if (auto* drafted = std::get_if<engine::Drafted>(&event); drafted && drafted->step >= 2)
      drafted->decision = {.size = drafted->step % 5,
                           .tokens = 1.5f,
                           .ms = drafted->step == 3 ? 50.0f : 5.0f,
                           .plain_ms = 4};
  const auto timeline = timeline_of(events);
  const engine::RunRecord& run = *timeline.run(1);
  RunCounters counters;
  extend(counters, run);
  ASSERT_GT(counters.choice.size(), 5u);
  for (std::size_t i = 0; i < counters.choice.size(); ++i)
    EXPECT_EQ(counters.of(LaneKind::Choice).at(i), i < 2 ? 0 : static_cast<float>(i % 5));
  EXPECT_EQ(counters.missed.at(1), 0) << "no size was chosen";
  EXPECT_EQ(counters.missed.at(3), 1) << "a tenth of the expected time";
  ui::RunTimes times;
  extend(times, run);
  EXPECT_EQ(times.total.chosen, static_cast<std::int64_t>(times.steps.size()) - 2);
}

// Returns the number of characters in the lane `choice` of a slice as wide as the panel. The step takes about 5 ms.
std::ptrdiff_t n_characters_of_choice(float expected_ms) {
  constexpr int kStep = 3;
  std::vector<engine::Event> events = streams::one_run("prompt-lookup");
  float n_tokens = 0;
  for (const engine::Event& event : events)
    if (const auto* committed = std::get_if<engine::Committed>(&event);
        committed && committed->step == kStep)
      n_tokens = static_cast<float>(committed->tokens.size());
  for (engine::Event& event : events)
    if (auto* drafted = std::get_if<engine::Drafted>(&event))
      drafted->decision = {.size = 4, .tokens = n_tokens, .ms = expected_ms, .plain_ms = 4};
  DrawnWindow window;
  window.shell.take(std::move(events));
  window.shell.show(Screen::Live);
  window.said();
  auto& view = window.shell.state<TimelineView>();
  LaneOrder& lanes = window.shell.notes().lanes;
  const LaneKey choice{-1, LaneKind::Choice};
  for (const LaneKey& lane : view.natural_lanes)
    if (lane != choice) lanes.hide(lane);
  const RunTimes times = times_of(*window.shell.session().shown().timeline.run(1));
  window.shell.playhead().mode = Playhead::Mode::Paused;
  view.clock = ClockKind::Compute;
  view.range.t0 = times.steps[kStep].compute0;
  view.range.t1 = times.steps[kStep].compute1;
  const auto n_drawn = [&window] {
    for (int i = 0; i < 3; ++i) window.gui.frame(window.shell);
    return std::ranges::count(glyphs::drawn(), std::string("Timeline###live.gantt"),
                              &glyphs::Glyph::window);
  };
  const std::ptrdiff_t n_expanded = n_drawn();
  lanes.toggle_collapsed(choice);  // a collapsed lane has no text in its slices
  return n_expanded - n_drawn();
}

TEST(Gantt, wide_choice_has_prediction_and_result) {
  EXPECT_EQ(n_characters_of_choice(5), 35) << "4: 1.0 tokens, 5.00 ms; measured 1, 5.00 ms";
  EXPECT_EQ(n_characters_of_choice(9.9f), 36) << "the same after an exclamation mark";
}

// Opens the events as a recording and returns the corners of triangles in the colour of warnings that the panel Timeline drew.
inks::Drawn warnings_of(const std::vector<engine::Event>& events, Screen screen) {
  const engine::test::Folder folder;
  const std::string path = folder / "run.pdrun";
  engine::Recorder recorder(path);
  for (const engine::Event& event : events) recorder.push(event);
  recorder.close();
  DrawnWindow window;
  window.shell.open(path);
  EXPECT_TRUE(waiting::until([&] { return !window.shell.reads(); },
                             [&] { window.gui.frame(window.shell); }));
  window.shell.show(screen);
  window.said();
  const char* panel =
      screen == Screen::Live ? "Timeline###live.gantt" : "Timelines###compare.gantt";
  EXPECT_NE(ImGui::FindWindowByName(panel), nullptr);
  return inks::drawn(panel, colour(theme().warn));
}

TEST(Gantt, a_cut_recording_has_words_at_the_end_of_each_lane) {
  constexpr int kIndices = 6;  // of a character
  EXPECT_EQ(warnings_of(streams::one_run("jacobi", 60), Screen::Live).n, 0);
  const inks::Drawn one = warnings_of(streams::cut_mid_step(), Screen::Live);
  EXPECT_GE(one.n, kIndices * std::ssize(std::string("endedmid-step9")));
  EXPECT_EQ(one.n_cut, 0);
  // Of a race, both lanes are cut.
  std::vector<engine::Event> race = streams::race({"ar", "jacobi"});
  race.resize(race.size() / 2);
  const inks::Drawn two = warnings_of(race, Screen::Compare);
  EXPECT_GE(two.n, 2 * kIndices * std::ssize(std::string("endedmid-step9")));
  EXPECT_EQ(two.n_cut, 0);
}

TEST(Arrows, follow_a_guess_from_proposal_to_commit) {
  const auto timeline = timeline_of(streams::one_run("jacobi"));
  const engine::RunRecord& run = *timeline.run(1);
  // A token that was guessed before its commit.
  const auto token = std::ranges::find_if(run.tokens, [](const engine::TokenRecord& t) {
    return t.step > 3 && t.origin.kind != engine::RowTag::Kind::Current;
  });
  ASSERT_NE(token, run.tokens.end());
  const auto arrows = arrows_of(run, {1, token->step, token->pos, -1});
  ASSERT_GE(arrows.size(), 3u);
  const auto step = static_cast<std::size_t>(token->step);
  EXPECT_EQ(arrows.back().to, (FlowEnd{LaneKind::Commit, step}));
  EXPECT_EQ(arrows.back().from, (FlowEnd{LaneKind::Verify, step}));
  EXPECT_EQ(arrows[arrows.size() - 3].from, (FlowEnd{LaneKind::Propose, step}));
  for (std::size_t i = 1; i < arrows.size(); ++i) EXPECT_EQ(arrows[i].from, arrows[i - 1].to);
  EXPECT_LT(arrows.front().from.step, step);
  // A selected step has the arrows of each token that it committed, and no others.
  const auto all = arrows_of(run, {1, token->step, -1, -1});
  const engine::StepHead head = run.steps.head(step);
  const auto n_commits = std::ranges::count(all, FlowEnd{LaneKind::Commit, step}, &FlowArrow::to);
  EXPECT_EQ(n_commits, head.n_tokens);
  EXPECT_LE(all.size(), kMaxArrows);
  EXPECT_TRUE(arrows_of(run, {}).empty());
  EXPECT_TRUE(arrows_of(run, {1, 100'000, -1, -1}).empty());
}

TEST(Arrows, start_at_the_forward_in_plain_decoding) {
  const auto timeline = timeline_of(streams::one_run("ar"));
  const auto arrows = arrows_of(*timeline.run(1), {1, 5, -1, -1});
  ASSERT_EQ(arrows.size(), 2u);
  EXPECT_EQ(arrows[0].from, (FlowEnd{LaneKind::Target, 5}));
  EXPECT_EQ(arrows[1].to, (FlowEnd{LaneKind::Commit, 5}));
}

constexpr LaneKey key(LaneKind kind) {
  return {-1, kind};
}

TEST(LaneOrder, lanes_move_and_new_ones_follow_default_order) {
  const LaneKey target = key(LaneKind::Target), verify = key(LaneKind::Verify),
                commit = key(LaneKind::Commit), hit = key(LaneKind::PoolHit);
  LaneOrder order;
  const std::vector<LaneKey> three{target, verify, commit}, four{target, hit, verify, commit};
  EXPECT_EQ(order.arranged(three), three);
  order.move(three, commit, 0);
  EXPECT_EQ(order.arranged(three), (std::vector{commit, target, verify}));
  // The first pool hit of the run adds a lane after the target's, its default place.
  EXPECT_EQ(order.arranged(four), (std::vector{commit, target, hit, verify}));
  order.move(four, commit, 99);
  EXPECT_EQ(order.arranged(four), (std::vector{target, hit, verify, commit}));
  EXPECT_EQ(order.arranged(three), three) << "another run has no pool";
}

TEST(LaneOrder, hidden_lanes_are_counted_and_restored) {
  const LaneKey target = key(LaneKind::Target), verify = key(LaneKind::Verify),
                commit = key(LaneKind::Commit);
  const std::vector<LaneKey> natural{target, verify, commit};
  LaneOrder order;
  order.hide(verify);
  order.hide(key(LaneKind::PoolHit));  // a lane of another run
  EXPECT_EQ(order.arranged(natural), (std::vector{target, commit}));
  EXPECT_EQ(order.n_hidden(natural), 1);
  order.move(natural, commit, 0);
  order.show_all();
  EXPECT_EQ(order.n_hidden(natural), 0);
  EXPECT_EQ(order.arranged(natural).front(), commit);
  order.toggle_collapsed(commit);
  EXPECT_TRUE(order.collapsed(commit));
  order.toggle_collapsed(commit);
  EXPECT_FALSE(order.collapsed(commit));
}

}  // namespace

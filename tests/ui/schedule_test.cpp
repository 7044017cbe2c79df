// The panel Schedule: rows of SEED's rounds, their sentences, and selection by clicks.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/lod.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/schedule_stream.h"
#include "tests/ui/support/streams.h"
#include "ui/panels/time/schedule.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/schedule.h"
#include "ui/prepare/time/simulation.h"

namespace {

using namespace scripted;
using engine::Nanoseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using ui::ScheduleAct;
using ui::ScheduleLanes;
using ui::ScheduleRow;
using ui::ScheduleRowKind;
using ui::ScheduleSlice;

constexpr double kDraftTime = static_cast<double>(streams::kScheduledDraft);

ScheduleLanes lanes_of(const engine::Timeline& timeline) {
  return ui::schedule_lanes_of(timeline.runs());
}

const ScheduleRow& row_of(const ScheduleLanes& lanes, ScheduleRowKind kind, int index = 0) {
  return *std::ranges::find_if(
      lanes.rows, [&](const ScheduleRow& row) { return row.kind == kind && row.index == index; });
}

int branch_of(const ScheduleLanes& lanes, const ScheduleSlice& slice) {
  return lanes.schedule.turns[slice.turn].branch;
}

TEST(Schedule, branch_waits_drafts_waits_and_is_verified) {
  const auto timeline = timeline_of(streams::schedule(3, 3));
  const ScheduleLanes lanes = lanes_of(timeline);
  const ScheduleRow& branch = row_of(lanes, ScheduleRowKind::Branch, 1);
  ASSERT_GE(branch.slices.size(), 4u);
  const std::vector<ScheduleSlice>& s = branch.slices;
  EXPECT_EQ(s[0].act, ScheduleAct::WaitsToDraft);
  EXPECT_EQ(s[0].t0, 0);
  EXPECT_EQ(s[0].t1, kDraftTime) << "until branch 0 has its draft";
  EXPECT_EQ(s[1].act, ScheduleAct::Drafts);
  EXPECT_EQ(s[1].t1, 2 * kDraftTime);
  EXPECT_EQ(s[2].act, ScheduleAct::WaitsForTarget);
  EXPECT_EQ(s[3].act, ScheduleAct::BeingVerified);
  const ScheduleRow& target = lanes.rows[0];
  ASSERT_EQ(target.kind, ScheduleRowKind::Target);
  EXPECT_EQ(target.slices[0].act, ScheduleAct::WaitsForDraft);
  EXPECT_EQ(target.slices[1].t0, kDraftTime);
  EXPECT_EQ(target.slices[2].t0, s[2].t1) << "the target takes branch 1 next";
  EXPECT_EQ(branch_of(lanes, target.slices[2]), 1);
  EXPECT_EQ(row_of(lanes, ScheduleRowKind::Verify).slices[0].t0, target.slices[1].t1);
  EXPECT_EQ(ui::row_name(branch), "branch 1");
}

TEST(Schedule, waiting_turns_move_up_in_the_queue) {
  const auto timeline = timeline_of(streams::schedule(3, 3));
  const ScheduleLanes lanes = lanes_of(timeline);
  const ScheduleRow& first = row_of(lanes, ScheduleRowKind::Queue, 0);
  const ScheduleRow& second = row_of(lanes, ScheduleRowKind::Queue, 1);
  EXPECT_EQ(branch_of(lanes, first.slices[0]), 1);
  EXPECT_EQ(branch_of(lanes, second.slices[0]), 2);
  EXPECT_EQ(second.slices[0].t0, 3 * kDraftTime);
  EXPECT_EQ(branch_of(lanes, first.slices[1]), 2) << "the target verifies branch 1";
  EXPECT_EQ(first.slices[1].t0, first.slices[0].t1);
  EXPECT_EQ(second.slices[0].t1, first.slices[1].t0);
  EXPECT_EQ(ui::row_name(second), "queue 2nd");
  // The times that a draft spends at the places of the queue sum to the wait in its branch's row.
  const std::size_t turn = first.slices[1].turn;
  double in_queue = 0, waits = 0;
  for (const ScheduleRow& row : lanes.rows) {
    for (const std::size_t i : ui::slices_of_turn(lanes, row, turn)) {
      const ScheduleSlice& slice = row.slices[i];
      if (slice.act == ScheduleAct::InQueue) in_queue += slice.t1 - slice.t0;
      if (slice.act == ScheduleAct::WaitsForTarget) waits += slice.t1 - slice.t0;
    }
  }
  EXPECT_GT(waits, 0);
  EXPECT_EQ(in_queue, waits);
}

TEST(Schedule, sentences_describe_slices) {
  const auto timeline = timeline_of(streams::schedule(3, 3));
  const ScheduleLanes lanes = lanes_of(timeline);
  const ScheduleRow& one = row_of(lanes, ScheduleRowKind::Branch, 1);
  const ScheduleRow& two = row_of(lanes, ScheduleRowKind::Branch, 2);
  const auto said = [&](const ScheduleRow& row, std::size_t i) {
    return ui::slice_sentence(lanes, row, i);
  };
  const auto wait = [](const ScheduleSlice& s) { return ui::short_time(s.t1 - s.t0); };
  EXPECT_EQ(said(one, 0),
            "Branch 1 waits for the draft model, " + wait(one.slices[0]) + ", after branch 0.");
  EXPECT_EQ(said(one, 1), "Branch 1 lets the draft model read its prompt and drafts 4 tokens, " +
                              wait(one.slices[1]) + ".");
  const auto is_later_draft = [&](const ScheduleSlice& slice) {
    return slice.act == ScheduleAct::Drafts && lanes.schedule.turns[slice.turn].step > 0;
  };
  const auto later = std::ranges::find_if(one.slices, is_later_draft);
  ASSERT_NE(later, one.slices.end());
  EXPECT_EQ(said(one, static_cast<std::size_t>(later - one.slices.begin())),
            "Branch 1 drafts 4 tokens, " + wait(*later) + ".");
  EXPECT_EQ(said(one, 2),
            "Branch 1 waits for the target, " + wait(one.slices[2]) + ", after branch 0.");
  EXPECT_EQ(said(two, 2),
            "Branch 2 waits for the target, " + wait(two.slices[2]) + ", after branches 0 and 1.");
  const ScheduleRow& target = lanes.rows[0];
  EXPECT_THAT(said(target, 0), HasSubstr("waits for a draft"));
  const int n_tokens = timeline.runs()[0].steps.head(0).n_tokens;
  EXPECT_THAT(said(target, 1), AllOf(HasSubstr("verifies the draft of branch 0: 5 rows"),
                                     HasSubstr("+" + std::to_string(n_tokens) + " token")));
  EXPECT_THAT(said(row_of(lanes, ScheduleRowKind::Queue, 1), 0),
              AllOf(HasSubstr("2nd in the queue"), HasSubstr("after branches 0 and 1")));
  EXPECT_THAT(said(row_of(lanes, ScheduleRowKind::Verify), 0), HasSubstr("of 4 drafted tokens"));
}

// The sums of a schedule, computed directly from its events.
struct Sums {
  double target = 0, target_waits = 0, for_target = 0, to_draft = 0;
  int longest = 0;
  std::int64_t tokens = 0;
};

Sums sums_of(const std::vector<engine::Event>& events) {
  Sums sums;
  std::map<engine::RunId, Nanoseconds> queued;
  int waiting = 0;
  for (const engine::Event& event : events) {
    if (const auto* e = std::get_if<engine::Queued>(&event)) {
      queued[e->run] = e->t;
      waiting += e->resource == "target";
    }
    if (const auto* e = std::get_if<engine::Dequeued>(&event)) {
      const auto waited = static_cast<double>(e->t - queued[e->run]);
      // A draft that the target verifies at once was not in the queue.
      if (e->resource == "target" && waited > 0) sums.longest = std::max(sums.longest, waiting);
      waiting -= e->resource == "target";
      (e->resource == "target" ? sums.for_target : sums.to_draft) += waited;
    }
    if (const auto* e = std::get_if<engine::Waiting>(&event))
      sums.target_waits += static_cast<double>(e->t - e->since);
    if (const auto* e = std::get_if<engine::Committed>(&event))
      sums.tokens += static_cast<std::int64_t>(e->tokens.size());
    if (const auto* e = std::get_if<engine::StepEnded>(&event))
      sums.target += static_cast<double>(e->forward + e->verify + e->commit);
  }
  return sums;
}

TEST(Schedule, figures_are_sums_over_events) {
  const std::vector<engine::Event> events = streams::schedule(7, 3, 60);
  const auto timeline = timeline_of(events);
  const ScheduleLanes lanes = lanes_of(timeline);
  const Sums sums = sums_of(events);
  const ui::ScheduleFigures& f = lanes.figures;
  EXPECT_EQ(f.target, sums.target);
  EXPECT_EQ(f.target_waits, sums.target_waits);
  EXPECT_EQ(f.waits_for_target, sums.for_target);
  EXPECT_EQ(f.waits_to_draft, sums.to_draft);
  EXPECT_EQ(f.longest_queue, sums.longest);
  EXPECT_EQ(f.n_tokens, sums.tokens);
  EXPECT_EQ(f.under_way, lanes.end) << "in this stream some branch is always active";
  EXPECT_EQ(f.target_busy(), sums.target / lanes.end);
  // The figures of two parts sum to those of the whole.
  const double middle = lanes.end / 3;
  const ui::ScheduleFigures a = figures_between(lanes, 0, middle),
                            b = figures_between(lanes, middle, lanes.end);
  EXPECT_NEAR(a.target + b.target, f.target, 1);
  EXPECT_NEAR(a.waits_for_target + b.waits_for_target, f.waits_for_target, 1);
  EXPECT_NEAR(a.under_way + b.under_way, f.under_way, 1);
  float over = 0;
  for (const float tokens : ui::tokens_over(lanes, 50)) over += tokens;
  EXPECT_EQ(over, static_cast<float>(sums.tokens));
}

TEST(Schedule, no_events_give_no_figures) {
  EXPECT_TRUE(lanes_of(timeline_of(streams::one_run("ar"))).empty());
  EXPECT_EQ(ui::ScheduleFigures{}.target_busy(), -1);
  // The stream is cut within the first draft, so it has one turn and nothing is verified.
  std::vector<engine::Event> events = streams::schedule(1, 1);
  events.resize(5);
  ASSERT_TRUE(std::holds_alternative<engine::StepBegun>(events.back()));
  const ScheduleLanes lanes = lanes_of(timeline_of(events));
  EXPECT_FALSE(lanes.empty());
  EXPECT_EQ(lanes.figures.n_forwards, 0);
  EXPECT_TRUE(lanes.rows[0].slices.empty());
}

// A run that is stopped while its branch is in the queue, and one that continues.
TEST(Schedule, stopped_run_leaves_the_queue) {
  std::vector<engine::Event> events = streams::schedule(2, 2);
  const auto is_queued = [](const engine::Event& event) {
    const auto* e = std::get_if<engine::Queued>(&event);
    return e && e->run == 2 && e->resource == "target";
  };
  const auto queued = std::ranges::find_if(events, is_queued);
  const Nanoseconds t = engine::time_of(*queued);
  std::vector<engine::Event> reported(events.begin(), queued + 1);
  reported.push_back(engine::RunFinished{.t = t + 1'000'000, .run = 2, .stop_reason = "stopped"});
  for (auto event = queued + 1; event != events.end(); ++event)
    if (engine::run_of(*event) != 2) reported.push_back(*event);
  std::ranges::stable_sort(reported, {}, [](const auto& e) { return engine::time_of(e); });
  const ScheduleLanes lanes = lanes_of(timeline_of(reported));
  const ScheduleRow& branch = row_of(lanes, ScheduleRowKind::Branch, 1);
  ASSERT_EQ(branch.slices.back().act, ScheduleAct::WaitsForTarget);
  EXPECT_EQ(branch.slices.back().t1 - branch.slices.back().t0, 1e6);
  EXPECT_THAT(ui::slice_sentence(lanes, branch, branch.slices.size() - 1),
              HasSubstr("not verified"));
  for (const ScheduleRow& row : lanes.rows)
    for (const ScheduleSlice& slice : row.slices)
      if (row.kind == ScheduleRowKind::Queue && branch_of(lanes, slice) == 1) {
        EXPECT_LE(slice.t1, branch.slices.back().t1);
      }
}

// Two branches whose drafts the target takes at the same time.
TEST(Schedule, forward_of_several_branches_is_one_slice) {
  std::vector<engine::Event> events;
  for (const engine::RunId run : {1u, 2u}) {
    const int branch = static_cast<int>(run) - 1;
    const Nanoseconds drafts = run * 100, queued = drafts + 100;
    events.push_back(
        engine::RunStarted{.t = 0, .run = run, .decoder = "seed", .prompt_tokens = {1}});
    events.push_back(engine::Queued{0, run, branch, "draft"});
    events.push_back(engine::Dequeued{drafts, run, branch, "draft"});
    events.push_back(engine::StepBegun{.t = drafts, .run = run, .n_rows = 2});
    events.push_back(engine::Queued{queued, run, branch, "target"});
    events.push_back(engine::Dequeued{400, run, branch, "target"});
    events.push_back(engine::StepEnded{
        .t = 900, .run = run, .propose = 100, .forward = 400, .verify = 60, .commit = 40});
  }
  const ScheduleLanes lanes = lanes_of(timeline_of(events));
  ASSERT_EQ(lanes.rows[0].slices.size(), 1u);
  EXPECT_EQ(lanes.rows[0].slices[0].t1, 800);
  EXPECT_THAT(ui::slice_sentence(lanes, lanes.rows[0], 0),
              HasSubstr("verifies the drafts of branches 0 and 1: 4 rows"));
  for (const std::size_t turn : {0u, 1u})
    EXPECT_EQ(ui::slices_of_turn(lanes, lanes.rows[0], turn).size(), 1u);
  EXPECT_EQ(ui::turn_of(lanes, 2, 0), 1u);
  EXPECT_EQ(ui::turn_of(lanes, 2, 1), 2u) << "there is no such step";
}

TEST(Schedule, blocks_are_bounded_and_lose_no_slice) {
  const auto timeline = timeline_of(streams::schedule(40, 3, 300));
  const ScheduleLanes lanes = lanes_of(timeline);
  ASSERT_GT(lanes.schedule.turns.size(), 3000u);
  for (const float width : {100.0f, 900.0f, 1e7f}) {
    const ui::ClockView view{ui::ClockKind::Wall, 0, 0, lanes.end, width};
    for (const ScheduleRow& row : lanes.rows) {
      const auto blocks = blocks_in_view(row, view);
      EXPECT_LE(blocks.size(), static_cast<std::size_t>(width) + 2) << ui::row_name(row);
      std::size_t next = 0;
      double worked = 0;
      for (const ui::ScheduleBlock& block : blocks) {
        ASSERT_EQ(block.first, next) << ui::row_name(row);
        next = block.last;
        if (block.is_bucket())
          worked += block.worked * (block.t1 - block.t0);
        else
          worked += row.sums[block.last].worked - row.sums[block.first].worked;
      }
      EXPECT_EQ(next, row.slices.size());
      EXPECT_NEAR(worked, row.sums.back().worked, 1e-4 * row.sums.back().worked + 1);
    }
  }
  const ScheduleRow& target = lanes.rows[0];
  const ScheduleSlice& middle = target.slices[target.slices.size() / 2];
  const ui::ClockView near{ui::ClockKind::Wall, 0, middle.t0, middle.t1, 900};
  const auto blocks = blocks_in_view(target, near);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(ui::slice_at(target, (middle.t0 + middle.t1) / 2), target.slices.size() / 2);
}

TEST(Schedule, timeline_shows_the_forward_after_the_wait) {
  const auto timeline = timeline_of(streams::schedule(3, 3));
  const ScheduleLanes lanes = lanes_of(timeline);
  const engine::RunRecord& run = *timeline.run(2);
  const ui::RunTimes times = times_of(run);
  const auto origin = static_cast<double>(lanes.schedule.origin);
  const ui::ClockView view{ui::ClockKind::Wall, origin, 0, lanes.end, 900};
  for (std::size_t step = 0; step < run.steps.size(); ++step) {
    const engine::ScheduleTurn& turn = lanes.schedule.turns[ui::turn_of(lanes, 2, step)];
    const auto proposal = part_of_step(run, times, step, ui::LaneKind::Propose, view);
    const auto forward = part_of_step(run, times, step, ui::LaneKind::Target, view);
    ASSERT_TRUE(proposal && forward);
    EXPECT_EQ(proposal->second, static_cast<double>(turn.queued) - origin);
    EXPECT_EQ(forward->first, static_cast<double>(turn.at_target) - origin);
  }
  engine::RunLod lod(engine::Clock::Wall);
  lod.update(run);
  EXPECT_EQ(lod.lane(engine::LaneKind::Target).slices()[0].start,
            lanes.schedule.turns[ui::turn_of(lanes, 2, 0)].at_target);
}

TEST(Simulation, stages_default_to_recorded_times) {
  const auto timeline = timeline_of(streams::schedule(3, 3));
  const engine::Schedule reported = lanes_of(timeline).schedule;
  double verified = 0;
  for (const engine::ScheduleForward& forward : reported.forwards)
    verified += static_cast<double>(forward.ended - forward.begin);
  verified /= static_cast<double>(reported.forwards.size());
  ui::SimulationForm form;
  engine::SimulatedStages stages = ui::stages_of(form, reported);
  EXPECT_EQ(stages.draft, streams::kScheduledDraft);
  EXPECT_NEAR(static_cast<double>(stages.verify), verified, 1);
  EXPECT_EQ(stages.n_branches, 3);
  EXPECT_EQ(stages.n_drafts, 0) << "one per branch, as in the paper";
  engine::Schedule with_prompts = reported;
  for (engine::ScheduleTurn& turn : with_prompts.turns)
    if (turn.step == 0) turn.drafts -= 2'000'000;
  EXPECT_EQ(ui::stages_of(form, with_prompts).draft, streams::kScheduledDraft)
      << "reading a prompt is not part of a draft";
  form = {.draft_ms = 4, .verify_ms = 0, .n_branches = 7, .n_drafts = 2, .policy = "shortest"};
  stages = ui::stages_of(form, reported);
  EXPECT_EQ(stages.draft, 4'000'000);
  EXPECT_EQ(stages.verify, 10'000) << "a stage has a minimum time";
  EXPECT_EQ(stages.n_branches, 7);
  EXPECT_EQ(stages.n_drafts, 2);
  EXPECT_EQ(stages.policy, "shortest");
  EXPECT_EQ(ui::stages_of({}, {}).n_branches, 1);
  EXPECT_EQ(ui::why_no_policy("fcfs"), "");
  EXPECT_THAT(ui::why_no_policy("priority"), HasSubstr("does not contain"));
}

// Returns a schedule of two rounds with 1 ms of drafting and 2 ms verification; the second draft runs during the first verification.
engine::SimulatedSchedule two_rounds() {
  constexpr Nanoseconds kMs = 1'000'000;
  engine::SimulatedSchedule s{.schedule = {}, .end = 5 * kMs, .in_turn = 6 * kMs, .bound = 1.5};
  s.schedule.n_branches = 2;
  for (int i = 0; i < 2; ++i) {
    const Nanoseconds judged = (3 + 2 * i) * kMs;
    s.schedule.turns.push_back({.run = static_cast<engine::RunId>(i + 1),
                                .branch = i,
                                .may_draft = 0,
                                .drafts = 0,
                                .queued = kMs,
                                .at_target = judged - 2 * kMs,
                                .left_queue = judged - 2 * kMs,
                                .forwarded = judged,
                                .ended = judged,
                                .n_rows = 4,
                                .n_tokens = 2});
    s.schedule.forwards.push_back({.begin = judged - 2 * kMs,
                                   .end = judged,
                                   .ended = judged,
                                   .first = static_cast<std::size_t>(i),
                                   .n = 1});
    s.schedule.taken.push_back(static_cast<std::uint32_t>(i));
  }
  return s;
}

TEST(Simulation, has_rows_figures_and_bound) {
  const ui::Simulation simulation = ui::simulation_of(two_rounds());
  EXPECT_EQ(simulation.lanes.end, 5e6);
  EXPECT_EQ(simulation.lanes.figures.target, 4e6);
  EXPECT_DOUBLE_EQ(simulation.speedup(), 1.2);
  const ScheduleRow& second = row_of(simulation.lanes, ScheduleRowKind::Branch, 1);
  ASSERT_EQ(second.slices.size(), 3u);
  EXPECT_EQ(second.slices[1].act, ScheduleAct::WaitsForTarget);
  EXPECT_EQ(second.slices[1].t1 - second.slices[1].t0, 2e6);
  const auto figures = ui::simulation_figures(
      simulation, {.draft = 1'000'000, .verify = 2'000'000, .n_branches = 2});
  EXPECT_EQ(figures[0].value, "1.20");
  EXPECT_EQ(figures[1].value, "1.50");
  EXPECT_THAT(figures[1].formula, HasSubstr("min(n, (Td + Tv) / Tv)"));
  EXPECT_EQ(figures[2].value, "80 %");
  for (const ui::Figure& figure : figures) EXPECT_EQ(figure.truth, ui::Truth::Simulated);
  EXPECT_EQ(ui::simulation_figures(ui::Simulation{}, {})[0].value, "-");
  const auto bound = [&](int n_drafts) {
    return ui::simulation_figures(
        simulation,
        {.draft = 1'000'000, .verify = 2'000'000, .n_branches = 3, .n_drafts = n_drafts})[1];
  };
  EXPECT_THAT(bound(2).formula, HasSubstr("Td / d"));
  EXPECT_THAT(bound(2).numbers, HasSubstr("n 3, d 2, Td"));
  EXPECT_THAT(bound(3).formula, HasSubstr("min(n, (Td + Tv) / Tv)"));
}

struct Stand {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};

  explicit Stand(const std::vector<engine::Event>& events) {
    shell.take(events);
    shell.show(ui::Screen::Live);
    for (int i = 0; i < 4; ++i) gui.frame(shell);
  }
};

ImGuiWindow* schedule_window() {
  return ImGui::FindWindowByName("Schedule###live.schedule");
}

TEST(Schedule, panel_is_offered_only_for_schedules) {
  {
    Stand stand(streams::schedule(3, 3));
    ASSERT_NE(schedule_window(), nullptr);
    ASSERT_NE(schedule_window()->DockNode, nullptr);
    EXPECT_EQ(schedule_window()->DockNode->VisibleWindow, schedule_window());
    const std::string said = stand.gui.said(stand.shell);
    EXPECT_THAT(said, AllOf(HasSubstr("target busy"), HasSubstr("at most 2"),
                            HasSubstr("some accepted none accepted"), HasSubstr("in the queue")));
  }
  Stand stand(streams::one_run("speculative"));
  EXPECT_TRUE(!schedule_window() || !schedule_window()->WasActive);
  // Requested by name, it explains why it is empty.
  stand.shell.ask_picture("none.png", "schedule", 1);
  for (int i = 0; i < 3; ++i) stand.gui.frame(stand.shell);
  EXPECT_THAT(stand.gui.said(stand.shell),
              AllOf(HasSubstr("No run has waited for a model"), HasSubstr("decoscope reason cot")));
}

// The events of a schedule that begins `later` ns after the usual time, with run numbers from `first` + 1.
std::vector<engine::Event> later_schedule(engine::RunId first, Nanoseconds later) {
  std::vector<engine::Event> events = streams::schedule(3, 3);
  std::erase_if(events, [](const engine::Event& event) {
    return std::holds_alternative<engine::ModelLoaded>(event);
  });
  for (engine::Event& event : events) {
    std::visit(
        [&](auto& e) {
          e.t += later;
          if constexpr (requires { e.run; }) e.run += first;
          if constexpr (requires { e.since; }) e.since += later;
        },
        event);
  }
  return events;
}

TEST(Schedule, shows_the_runs_that_took_turns_with_the_selected_one) {
  std::vector<engine::Event> events = streams::schedule(3, 3);
  const std::vector<engine::Event> later = later_schedule(10, 60'000'000'000);
  events.insert(events.end(), later.begin(), later.end());
  // Its comparison with plain decoding follows long after a run's end.
  events.push_back(engine::Agreement{.t = 61'000'000'000, .run = 1, .first_difference = -1});
  Stand stand(events);
  const engine::Timeline& timeline = stand.shell.session().shown().timeline;
  ASSERT_EQ(timeline.runs().size(), 6u);
  const auto ids_with = [&](engine::RunId run) {
    std::vector<engine::RunId> ids;
    for (const engine::RunRecord* one : ui::runs_of_schedule(timeline, timeline.run(run)))
      ids.push_back(one->id());
    return ids;
  };
  EXPECT_THAT(ids_with(2), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(ids_with(11), testing::ElementsAre(11, 12, 13));

  // The lanes of the earlier schedule are those of a recording that has nothing else.
  const auto alone = timeline_of(streams::schedule(3, 3));
  const ui::ScheduleFigures expected = lanes_of(alone).figures;
  const ui::ScheduleLanes early =
      ui::schedule_lanes_of(ui::runs_of_schedule(timeline, timeline.run(1)));
  EXPECT_EQ(early.figures.n_tokens, expected.n_tokens);
  EXPECT_EQ(early.figures.under_way, expected.under_way);

  // Selecting a run of the other schedule shows that one from its beginning.
  stand.shell.state<ui::ScheduleView>().range = {.t0 = 1e6, .t1 = 2e6};
  stand.shell.selection().run = 1;
  for (int i = 0; i < 3; ++i) stand.gui.frame(stand.shell);
  EXPECT_EQ(stand.shell.state<ui::ScheduleView>().range.t1, 0);
  EXPECT_THAT(stand.gui.said(stand.shell), HasSubstr("seed on demo-target, 3 runs"));
}

TEST(Schedule, recorded_drafts_exclude_the_reading_of_prompts) {
  constexpr Nanoseconds kMs = 1'000'000;
  engine::Schedule schedule;
  schedule.turns = {{.drafts = 0, .queued = 2 * kMs},
                    {.drafts = 0, .queued = 9 * kMs, .reads_prompt = true},
                    {.drafts = 0, .queued = 4 * kMs}};
  EXPECT_DOUBLE_EQ(ui::recorded_draft_ms(schedule), 3);
  schedule.turns.resize(2);
  schedule.turns.erase(schedule.turns.begin());
  EXPECT_DOUBLE_EQ(ui::recorded_draft_ms(schedule), 9) << "no other draft is recorded";
}

TEST(Schedule, a_run_without_turns_has_no_schedule_of_others) {
  std::vector<engine::Event> events = streams::schedule(3, 3);
  std::vector<engine::Event> plain = streams::one_run("ar");
  for (engine::Event& event : plain)
    std::visit(
        [](auto& e) {
          if constexpr (requires { e.run; }) e.run += 20;
        },
        event);
  events.insert(events.end(), plain.begin(), plain.end());
  Stand stand(events);
  stand.shell.ask_picture("none.png", "schedule", 1);
  for (int i = 0; i < 3; ++i) stand.gui.frame(stand.shell);
  EXPECT_THAT(stand.gui.said(stand.shell),
              AllOf(HasSubstr("has no schedule, because its decoder does not take turns"),
                    HasSubstr("Select run 1 (seed)"), Not(HasSubstr("target busy"))));
}

TEST(Schedule, one_sequence_needs_no_schedule) {
  std::vector<engine::Event> events = streams::one_run("speculative");
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event)) started->decoder = "seed";
  Stand stand(events);
  stand.shell.ask_picture("none.png", "schedule", 1);
  for (int i = 0; i < 3; ++i) stand.gui.frame(stand.shell);
  EXPECT_THAT(stand.gui.said(stand.shell), HasSubstr("This run has one sequence"));
}

TEST(Schedule, frame_cost_of_a_long_schedule_is_bounded) {
  Stand stand(streams::schedule(60, 3, 600));
  ImGuiWindow* window = schedule_window();
  ASSERT_NE(window, nullptr);
  ASSERT_GT(stand.shell.session().shown().timeline.n_events(), 60'000);
  constexpr int kRows = 8, kCorners = 8, kRest = 8'000;
  EXPECT_GT(window->DrawList->VtxBuffer.Size, 1'000);
  EXPECT_LT(window->DrawList->VtxBuffer.Size,
            kRows * kCorners * static_cast<int>(window->Size.x) + kRest);
}

TEST(Schedule, click_on_slice_selects_run_and_step) {
  const engine::test::Folder folder;
  {
    engine::Recorder recorder(folder / "seed.pdrun");
    for (const engine::Event& event : streams::schedule(3, 3)) recorder.push(event);
  }
  play("schedule_click", [&](ImGuiTestContext* ctx, Stage& stage) {
    ui::Shell& shell = *stage.shell;
    shell.open(folder / "seed.pdrun");
    wait_until(ctx, [&] { return !shell.reads() && schedule_window(); });
    ctx->Yield(4);
    const ScheduleLanes lanes = lanes_of(shell.session().shown().timeline);
    IM_CHECK(!lanes.empty());
    const ScheduleSlice& slice = lanes.rows[0].slices[1];
    const ui::Place place = ui::place_of(lanes, slice);
    IM_CHECK_NE(shell.selection().run, place.run);
    ctx->SetRef(schedule_window());
    const ImRect box = ctx->ItemInfo("lanes").RectFull;
    const auto share = static_cast<float>((slice.t0 + slice.t1) / 2 / (1.05 * lanes.end));
    ctx->MouseMoveToPos({box.Min.x + box.GetWidth() * share, box.Min.y + ui::px(12)});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK(shell.selection().locked == place);
    IM_CHECK_EQ(shell.selection().run, place.run);
    // The slices of target, branch and result are lit.
    IM_CHECK_GE(lit_by(ctx, stage, "Schedule###live.schedule", place).size(), std::size_t{12});
    ctx->WindowFocus("//Timeline###live.gantt");
    ctx->Yield(3);
    IM_CHECK_GE(lit_by(ctx, stage, "Timeline###live.gantt", place).size(), std::size_t{4});
  });
}

}  // namespace

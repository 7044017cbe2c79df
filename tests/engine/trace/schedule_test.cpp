// SEED's rounds in a trace: lanes show drafting, waiting, and the branch that the target takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/timeline/run_slices.h"
#include "engine/event/timeline/schedule_turns.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "engine/trace/schedule.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Nanoseconds kMs = 1'000'000;

/// Round times of one branch, in ms.
struct Round {
  Nanoseconds may_draft, drafts, queued, at_target, ends;
};

void add_run(std::vector<Event>& events, RunId run, int branch, const std::vector<Round>& rounds) {
  events.push_back(RunStarted{.t = kMs, .run = run, .decoder = "seed", .prompt_tokens = {1}});
  StepId step = 0;
  for (const Round& r : rounds) {
    const TokenTree tree{.token = {1, 2}, .parent = {-1, 0}, .tag = {{}, {RowTag::Kind::Draft, 1}}};
    events.push_back(Queued{r.may_draft * kMs, run, branch, "draft"});
    events.push_back(Dequeued{r.drafts * kMs, run, branch, "draft"});
    events.push_back(StepBegun{.t = r.drafts * kMs, .run = run, .step = step, .n_rows = 2});
    events.push_back(Drafted{.t = r.queued * kMs, .run = run, .step = step, .tree = tree, .q = {}});
    events.push_back(Queued{r.queued * kMs, run, branch, "target"});
    events.push_back(Dequeued{r.at_target * kMs, run, branch, "target"});
    const Nanoseconds end = r.ends * kMs;
    events.push_back(Verified{.t = end,
                              .run = run,
                              .step = step,
                              .fate = {RowFate::Context, RowFate::Accepted},
                              .n_proposed = 1,
                              .n_accepted = 1});
    events.push_back(StepEnded{.t = end,
                               .run = run,
                               .step = step,
                               .propose = (r.queued - r.drafts) * kMs,
                               .forward = end - r.at_target * kMs - 2000,
                               .verify = 1500,
                               .commit = 500});
    step++;
  }
}

/// Two branches; the second waits for the draft, then for the target.
Timeline two_branches() {
  std::vector<Event> events;
  add_run(events, 1, 0, {{1, 1, 5, 5, 15}, {15, 15, 19, 25, 35}});
  add_run(events, 2, 1, {{1, 5, 9, 15, 25}});
  // The target was idle until the first draft was ready.
  events.insert(events.begin() + 6, Waiting{5 * kMs, 1, 0, "target", kMs});
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  return timeline;
}

std::vector<std::string> described(const std::vector<TraceItem>& items) {
  std::vector<std::string> lines;
  for (const TraceItem& item : items) {
    lines.push_back(item.name + " " + std::to_string(item.ts / kMs) + "-" +
                    std::to_string((item.end + kMs - 1) / kMs));
  }
  return lines;
}

TEST(TraceSchedule, lanes_show_work_and_waits) {
  const Timeline timeline = two_branches();
  const auto lanes = schedule_lanes(timeline.runs());
  ASSERT_EQ(lanes.size(), 5u);
  EXPECT_EQ(lanes[0].name, "target");
  EXPECT_THAT(described(lanes[0].items),
              ElementsAre("forward branch 0 4-14", "forward branch 1 14-24",
                          "forward branch 0 24-34", "wait draft 0-4"));
  EXPECT_EQ(lanes[1].name, "draft branch 0");
  EXPECT_THAT(described(lanes[1].items),
              ElementsAre("draft branch 0 0-4", "wait target 18-24", "draft branch 0 14-18"));
  EXPECT_EQ(lanes[2].name, "draft branch 1");
  EXPECT_THAT(described(lanes[2].items),
              ElementsAre("wait draft 0-4", "wait target 8-14", "draft branch 1 4-8"));
  EXPECT_EQ(lanes[3].name, "verify");
  ASSERT_EQ(lanes[3].items.size(), 3u);
  EXPECT_EQ(lanes[3].items[0].name, "verify accepted 1/1");
  EXPECT_EQ(lanes[3].items[0].ts, 14 * kMs - 2000);
  EXPECT_EQ(lanes[4].name, "queue");
  EXPECT_THAT(described(lanes[4].items), ElementsAre("queue 1 8-14", "queue 1 18-24"));
  EXPECT_THAT(lanes[4].items[0].args, HasSubstr("\"branches\":[1]"));
}

// The draft model reads a prompt before the first step that drafts; older recordings do not report it.
TEST(TraceSchedule, the_draft_that_reads_the_prompt_is_marked) {
  const auto marked = [](const Timeline& timeline) {
    std::vector<std::string> drafts;
    const auto lanes = schedule_lanes(timeline.runs());
    for (const TraceItem& item : lanes[1].items)
      if (item.args.find("reads_prompt") != std::string::npos) drafts.push_back(item.args);
    return drafts;
  };
  EXPECT_THAT(marked(two_branches()), ElementsAre(HasSubstr("\"step\":0")));
  std::vector<Event> events;
  add_run(events, 1, 0, {{1, 1, 5, 5, 15}, {15, 15, 19, 25, 35}, {35, 35, 39, 40, 50}});
  const auto step = std::ranges::find_if(events, [](const Event& event) {
    const auto* begun = std::get_if<StepBegun>(&event);
    return begun && begun->step == 1;
  });
  const auto reading = [](Nanoseconds t) {
    return Phase{.t = t, .run = 1, .name = "draft prefill", .total = 5};
  };
  events.insert(step, {reading(15 * kMs + 1), reading(17 * kMs)});
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  EXPECT_THAT(marked(timeline), ElementsAre(HasSubstr("\"step\":1")));
  // A run whose first step drafts nothing and is not yet verified.
  Timeline live;
  std::vector<Event> first;
  add_run(first, 1, 0, {{1, 1, 5, 5, 15}});
  for (Event& event : first) {
    if (std::holds_alternative<Verified>(event)) break;
    if (auto* begun = std::get_if<StepBegun>(&event)) begun->n_rows = 1;
    if (auto* drafted = std::get_if<Drafted>(&event))
      drafted->tree = {.token = {1}, .parent = {-1}, .tag = {{}}};
    live.apply(event);
  }
  ASSERT_EQ(schedule_of(live.runs()).turns.size(), 1u);
  EXPECT_THAT(marked(live), testing::IsEmpty());
}

TEST(TraceSchedule, a_forward_of_two_branches_is_one_slice) {
  std::vector<Event> events;
  add_run(events, 1, 0, {{1, 1, 5, 9, 19}});
  add_run(events, 2, 1, {{1, 5, 9, 9, 19}});
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  const auto lanes = schedule_lanes(timeline.runs());
  EXPECT_THAT(described(lanes[0].items), ElementsAre("forward branch 0 1 8-18"));
  EXPECT_THAT(lanes[0].items[0].args, HasSubstr("\"runs\":[1,2]"));
}

TEST(TraceSchedule, the_exported_trace_places_forwards_after_waits) {
  const Timeline timeline = two_branches();
  std::string text;
  const auto write = [&](std::string_view piece) { text += piece; };
  write_trace(timeline, {}, write);
  const TraceCheck check = check_trace_text(text);
  EXPECT_TRUE(check.ok()) << (check.problems.empty() ? "" : check.problems[0].what);
  EXPECT_EQ(check.n_processes, 3);
  for (const char* name : {"schedule of all runs", "draft branch 1", "queue", "wait target"})
    EXPECT_THAT(text, HasSubstr(name));
  // Run 1 is process 1: its second forward started when the target took it.
  EXPECT_THAT(text, HasSubstr("\"pid\":1,\"tid\":2,\"ts\":24000"));
  text.clear();
  write_trace(timeline, {.run = 1}, write);
  EXPECT_THAT(text, Not(HasSubstr("schedule of all runs")));
  EXPECT_THAT(text, HasSubstr("wait target"));
}

TEST(TraceSchedule, runs_without_a_queue_have_no_lanes) {
  Timeline timeline;
  for (const Event& event : test::small_stream()) timeline.apply(event);
  EXPECT_TRUE(schedule_lanes(timeline.runs()).empty());
  const RunRecord& run = timeline.runs()[0];
  EXPECT_EQ(time_at_target(run, run.steps.head(0)), -1);
}

TEST(TraceSchedule, a_queued_step_starts_its_forward_when_taken) {
  const Timeline timeline = two_branches();
  const RunRecord& run = *timeline.run(1);
  EXPECT_EQ(time_at_target(run, run.steps.head(0)), 5 * kMs);
  EXPECT_EQ(time_at_target(run, run.steps.head(1)), 25 * kMs);
  const LaneSlices wall = slices_of(run, run.steps.head(1), Clock::Wall);
  EXPECT_EQ(wall.all[0].slice.end, 19 * kMs);
  EXPECT_EQ(wall.all[1].lane, LaneKind::Target);
  EXPECT_EQ(wall.all[1].slice.start, 25 * kMs);
  EXPECT_EQ(wall.all[wall.n - 1].slice.end, 35 * kMs);
  // Clocks that exclude waiting place the forward directly after the proposal.
  const LaneSlices compute = slices_of(run, run.steps.head(1), Clock::Compute);
  EXPECT_EQ(compute.all[1].slice.start, compute.all[0].slice.end);
}

}  // namespace
}  // namespace engine

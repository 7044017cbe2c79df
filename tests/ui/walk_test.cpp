// Places that keys move the view to: ends of blocks, slices of a lane, the steps of a token.
#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/streams.h"
#include "ui/prepare/time/walk.h"

namespace {

using namespace ui;

engine::Timeline timeline_of(const std::string& decoder) {
  engine::Timeline timeline;
  for (const engine::Event& event : streams::one_run(decoder)) timeline.apply(event);
  return timeline;
}

TEST(Walk, blocks_end_when_they_converge) {
  const auto timeline = timeline_of("jacobi");
  const engine::RunRecord& run = *timeline.run(1);
  std::size_t n = 0;
  int n_ends = 0;
  while (const auto next = next_boundary(run, n, 1)) {
    ASSERT_GT(*next, n);
    n = *next;
    if (n == run.steps.size()) break;
    bool converged = false;
    for (const auto& block : run.steps[n - 1].blocks) converged = converged || block.converged;
    EXPECT_TRUE(converged) << n;
    ++n_ends;
  }
  EXPECT_EQ(n, run.steps.size());
  EXPECT_GT(n_ends, 1);
  EXPECT_FALSE(next_boundary(run, run.steps.size(), 1));
  EXPECT_EQ(next_boundary(run, 1, -1), 0u);
  const auto plain = timeline_of("ar");
  EXPECT_FALSE(next_boundary(*plain.run(1), 0, 1));
}

TEST(Walk, lane_of_hits_stops_at_hits_only) {
  const auto timeline = timeline_of("lookahead");
  RunTimes times;
  extend(times, *timeline.run(1));
  std::size_t at = 0, n = times.steps.front().has_pool_hit ? 1 : 0;
  while (const auto next = next_in_lane(times, LaneKind::PoolHit, at, 1)) {
    at = *next;
    EXPECT_TRUE(times.steps[at].has_pool_hit);
    ++n;
  }
  std::size_t hits = 0;
  for (const StepSpan& s : times.steps) hits += s.has_pool_hit;
  EXPECT_EQ(n, hits);
  EXPECT_GT(hits, 2u);
  EXPECT_EQ(next_in_lane(times, LaneKind::Target, 4, -1), 3u);
  EXPECT_FALSE(next_in_lane(times, LaneKind::Target, 0, -1));
}

TEST(Walk, flow_runs_from_first_guess_to_commit) {
  const auto timeline = timeline_of("jacobi");
  const engine::RunRecord& run = *timeline.run(1);
  const engine::TokenRecord& token = run.tokens[run.tokens.size() / 2];
  const auto flow = flow_of(run, token.pos);
  ASSERT_GT(flow.size(), 1u);
  EXPECT_EQ(flow.back(), (FlowStop{FlowStop::Kind::Committed, token.step, -1}));
  for (std::size_t i = 0; i + 1 < flow.size(); ++i) {
    EXPECT_LT(flow[i].step, flow[i + 1].step);
    EXPECT_EQ(flow[i].kind, FlowStop::Kind::Refined);
  }
}

TEST(Walk, flow_of_pool_token_starts_at_its_insertion) {
  using engine::RowTag;
  const engine::PoolNgram ngram{.first = 5, .rest = {6, 7}, .born = 0};
  const RowTag first{RowTag::Kind::Guess, 0, 0}, second{RowTag::Kind::Guess, 0, 1};
  engine::Timeline timeline;
  for (const engine::Event& event : std::vector<engine::Event>{
           streams::story().model,
           engine::RunStarted{
               .run = 1, .model = 1, .decoder = "lookahead", .prompt_tokens = {1, 2, 3, 4}},
           engine::StepBegun{.run = 1, .step = 0, .kv_len = 3, .n_rows = 1},
           engine::PoolChanged{.run = 1, .step = 0, .added = {ngram}},
           engine::Committed{.run = 1,
           .step = 0,
           .first_pos = 4,
           .tokens = {5},
           .status = {engine::TokenStatus::Plain},
           .origin = {RowTag{}}},
           engine::StepEnded{.run = 1, .step = 0},
           engine::StepBegun{.run = 1, .step = 1, .kv_len = 4, .n_rows = 3},
           engine::Drafted{
               .run = 1, .step = 1, .tree = {{5, 6, 7}, {-1, 0, 1}, {RowTag{}, first, second}}},
           engine::PoolChanged{.run = 1, .step = 1, .tried = {ngram}},
           engine::Committed{.run = 1,
           .step = 1,
           .first_pos = 5,
           .tokens = {6, 7, 8},
           .status = {engine::TokenStatus::Accepted, engine::TokenStatus::Accepted,
                      engine::TokenStatus::Bonus},
           .origin = {first, second, RowTag{}}},
           engine::StepEnded{.run = 1, .step = 1}})
    timeline.apply(event);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  const engine::RunRecord& run = *timeline.run(1);
  const std::vector<FlowStop> pooled{{FlowStop::Kind::PoolInsert, 0, -1},
                                     {FlowStop::Kind::Committed, 1, -1}};
  EXPECT_EQ(flow_of(run, 5), pooled);
  EXPECT_EQ(flow_of(run, 6), pooled);
  EXPECT_EQ(flow_of(run, 7), (std::vector<FlowStop>{{FlowStop::Kind::Committed, 1, -1}}));
}

TEST(Walk, run_without_steps_has_no_stops) {
  engine::RunRecord run;
  EXPECT_TRUE(flow_of(run, 3).empty());
  EXPECT_FALSE(next_boundary(run, 0, 1));
}

}  // namespace

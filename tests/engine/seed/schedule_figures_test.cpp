// The quantities of SEED's Figures 5 to 7, against schedules made by hand.
#include <algorithm>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "engine/seed/schedule_figures.h"
#include "tests/support/streams.h"

namespace engine::test {
namespace {

ScheduleFigure figure(const ChainTexts& texts,
                      const FigureStages& stages,
                      int n_branches,
                      int n_drafters = 0) {
  return schedule_figure(chain_levels(texts, n_branches), stages, n_branches, n_drafters);
}

TEST(ChainLevels, wrong_drafts_give_one_token_a_round_and_right_ones_all) {
  const ScriptedLevels none =
      chain_levels({.right = 0, .depth = 3, .n_tokens = 6, .n_levels = 2}, 3);
  ASSERT_EQ(none.levels.size(), 2u);
  ASSERT_EQ(none.levels[1].size(), 3u);
  EXPECT_EQ(none.levels[1][2].emitted, std::vector<int>(6, 1));
  EXPECT_EQ(none.acceptance_rate(), 0);
  const ScriptedLevels all =
      chain_levels({.right = 1, .depth = 3, .n_tokens = 6, .n_levels = 2}, 3);
  EXPECT_EQ(all.levels[1][2].emitted, (std::vector<int>{4, 4}));
  EXPECT_EQ(all.acceptance_rate(), 1);
  EXPECT_EQ(all.n_proposed, 2 * 3 * 2 * 3);
}

TEST(ChainLevels, acceptance_is_the_alpha_of_a_chain) {
  for (const double right : {0.3, 0.7}) {
    const ScriptedLevels drawn =
        chain_levels({.right = right, .depth = 3, .n_tokens = 500, .n_levels = 20}, 2);
    EXPECT_NEAR(drawn.acceptance_rate(), (right + right * right + right * right * right) / 3, 0.01);
  }
}

TEST(ChainLevels, more_sequences_begin_with_the_same_ones) {
  const ChainTexts texts{.right = 0.5, .n_tokens = 50, .n_levels = 2};
  const ScriptedLevels two = chain_levels(texts, 2), three = chain_levels(texts, 3);
  for (const std::size_t level : {0u, 1u})
    for (const std::size_t i : {0u, 1u})
      EXPECT_EQ(two.levels[level][i].emitted, three.levels[level][i].emitted);
  EXPECT_NE(two.levels[0][0].emitted, two.levels[0][1].emitted);
  EXPECT_NE(two.levels[0][0].emitted, two.levels[1][0].emitted);
  ChainTexts other = texts;
  other.seed = 2;
  EXPECT_NE(chain_levels(other, 2).levels[0][0].emitted, two.levels[0][0].emitted);
}

// Two sequences of two rounds. A draft takes 30, a verification 10.
//   a draft model each   drafts 0-30 and 0-30, verifications 30-40 and 40-50,
//                        drafts 40-70 and 50-80, verifications 70-80 and 80-90
//   one drafter          drafts 0-30, 30-60, 60-90, 90-120; verifications 30-40, 60-70, 90-100, 120-130
TEST(ScheduleFigure, equals_a_schedule_made_by_hand) {
  for (const bool right : {false, true}) {
    const ChainTexts texts{
        .right = right ? 1.0 : 0.0, .depth = 3, .n_tokens = right ? 8 : 2, .n_levels = 5};
    const double tokens = right ? 16 : 4;  // of a level
    const FigureStages stages{.draft = 30, .verify = 10, .step = 8};
    const ScheduleFigure each = figure(texts, stages, 2);
    EXPECT_EQ(each.n_rounds, 5 * 4);
    EXPECT_EQ(each.n_tokens, 5 * static_cast<int>(tokens));
    EXPECT_DOUBLE_EQ(each.tokens_per_round(), right ? 4 : 1);
    EXPECT_DOUBLE_EQ(each.speedup, 160.0 / 90);
    EXPECT_DOUBLE_EQ(each.bound, 2);
    EXPECT_DOUBLE_EQ(each.speedup_over_plain, tokens * 8 / 90);
    EXPECT_DOUBLE_EQ(each.target_busy, 40.0 / 90);
    EXPECT_DOUBLE_EQ(each.drafters_busy, 120.0 / (2 * 90));
    const ScheduleFigure one = figure(texts, stages, 2, 1);
    EXPECT_DOUBLE_EQ(one.speedup, 160.0 / 130);
    EXPECT_DOUBLE_EQ(one.bound, 40.0 / 30);
    EXPECT_DOUBLE_EQ(one.speedup_over_plain, tokens * 8 / 130);
    EXPECT_DOUBLE_EQ(one.target_busy, 40.0 / 130);
    EXPECT_DOUBLE_EQ(one.drafters_busy, 120.0 / 130);
  }
}

TEST(ScheduleFigure, one_branch_is_its_base) {
  for (const double right : {0.0, 0.4, 1.0}) {
    const ScheduleFigure one = figure({.right = right}, {.draft = 30, .verify = 10, .step = 10}, 1);
    EXPECT_DOUBLE_EQ(one.speedup, 1);
    EXPECT_DOUBLE_EQ(one.bound, 1);
    EXPECT_DOUBLE_EQ(one.target_busy, 0.25);
    EXPECT_DOUBLE_EQ(one.drafters_busy, 0.75);
    EXPECT_DOUBLE_EQ(one.speedup_over_plain, one.tokens_per_round() * 10 / 40);
  }
}

TEST(ScheduleFigure, drafts_that_take_no_time_leave_nothing_to_gain) {
  for (const int n : {1, 2, 6}) {
    const ScheduleFigure free = figure({.right = 0.6}, {.draft = 0, .verify = 10, .step = 10}, n);
    EXPECT_DOUBLE_EQ(free.speedup, 1) << n;
    EXPECT_DOUBLE_EQ(free.bound, 1) << n;
    EXPECT_DOUBLE_EQ(free.target_busy, 1) << n;
    EXPECT_DOUBLE_EQ(free.drafters_busy, 0) << n;
    EXPECT_DOUBLE_EQ(free.speedup_over_plain, free.tokens_per_round()) << n;
  }
}

TEST(ScheduleFigure, long_sequences_reach_the_bound_by_number_of_branches) {
  const FigureStages stages{.draft = 30, .verify = 10, .step = 10};
  for (int n = 1; n <= 6; n++) {
    const ScheduleFigure f = figure({.right = 0, .n_tokens = 400, .n_levels = 1}, stages, n);
    EXPECT_LE(f.speedup, f.bound * (1 + 1e-9)) << n;
    EXPECT_GE(f.speedup, f.bound * 0.98) << n;
    EXPECT_NEAR(f.target_busy, std::min(n, 4) / 4.0, 0.02) << n;
    EXPECT_NEAR(f.drafters_busy, 0.75 * f.speedup / n, 1e-9) << n;
  }
}

// Sequences that need different numbers of rounds end at different times, and the last one runs alone.
TEST(ScheduleFigure, unequal_sequences_gain_less_than_equal_ones) {
  const FigureStages stages{.draft = 30, .verify = 10, .step = 10};
  const ChainTexts texts{.right = 0.5, .n_tokens = 40};
  ChainTexts equal = texts;
  equal.right = 0;
  EXPECT_LT(figure(texts, stages, 3).speedup, figure(equal, stages, 3).speedup * 0.95);
}

TEST(ScheduleFigure, impossible_inputs_are_contract_errors) {
  const ScriptedLevels levels = chain_levels({}, 2);
  EXPECT_THROW(schedule_figure({}, {}, 2, 0), ContractError);
  EXPECT_THROW(schedule_figure(levels, {}, 0, 0), ContractError);
  EXPECT_THROW(schedule_figure(levels, {.draft = 0, .verify = 0}, 2, 0), ContractError);
  EXPECT_THROW(chain_levels({.right = 1.5}, 2), ContractError);
  EXPECT_THROW(chain_levels({.depth = 0}, 2), ContractError);
}

/// A search with one thought, written by a run of one step, whose draft takes 30 ns.
Timeline one_thought(Nanoseconds verify) {
  Timeline timeline;
  timeline.apply(model_loaded());
  timeline.apply(SearchBegun{.search = 1});
  for (const Event& event : run_events({.run = 1, .decoder = "seed", .n_steps = 1})) {
    if (const auto* ended = std::get_if<StepEnded>(&event)) {
      const Nanoseconds at_target = ended->t - verify;
      timeline.apply(Queued{.t = at_target - 30, .run = 1, .resource = "draft"});
      timeline.apply(Dequeued{.t = at_target - 30, .run = 1, .resource = "draft"});
      timeline.apply(Queued{.t = at_target, .run = 1, .resource = "target"});
      timeline.apply(Dequeued{.t = at_target, .run = 1, .resource = "target"});
    }
    timeline.apply(event);
  }
  timeline.apply(ThoughtMade{.search = 1, .node = 1, .depth = 1, .runs = {1}});
  return timeline;
}

TEST(RecordedStages, a_stage_without_time_is_left_out) {
  const std::vector<RecordedStage> stages = recorded_stages(one_thought(7));
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].name, "thoughts");
  EXPECT_EQ(stages[0].verify, 7);
  EXPECT_EQ(stages[0].draft, 30);
  EXPECT_TRUE(recorded_stages(one_thought(0)).empty());
}

TEST(RecordedStages, a_timeline_without_searches_has_none) {
  EXPECT_TRUE(recorded_stages(Timeline()).empty());
}

}  // namespace
}  // namespace engine::test

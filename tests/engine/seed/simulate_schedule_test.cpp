// Simulating a recorded schedule with given stage times keeps its turns and gives them the expected
// times.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/seed/rounds.h"
#include "engine/seed/simulate_schedule.h"

namespace engine::test {
namespace {

/// A recorded sequence: its start and the tokens of each round. A round took 10 ns.
struct RecordedSequence {
  Nanoseconds begin = 0;
  std::vector<int> tokens;
};

Schedule schedule(int n_branches, const std::vector<RecordedSequence>& texts) {
  Schedule recorded;
  recorded.n_branches = n_branches;
  for (std::size_t i = 0; i < texts.size(); i++) {
    Nanoseconds t = texts[i].begin;
    for (std::size_t step = 0; step < texts[i].tokens.size(); step++, t += 10) {
      recorded.turns.push_back({.run = static_cast<RunId>(i + 5),
                                .step = static_cast<StepId>(step),
                                .branch = static_cast<int>(i) % n_branches,
                                .may_draft = t,
                                .drafts = t + 1,
                                .queued = t + 3,
                                .at_target = t + 4,
                                .left_queue = t + 4,
                                .forwarded = t + 9,
                                .ended = t + 10,
                                .n_rows = 5,
                                .n_tokens = texts[i].tokens[step],
                                .n_proposed = 4,
                                .n_accepted = texts[i].tokens[step] - 1});
    }
  }
  return recorded;
}

Schedule together(int n_texts, int n_rounds) {
  return schedule(3, std::vector<RecordedSequence>(
                         static_cast<std::size_t>(n_texts),
                         {0, std::vector<int>(static_cast<std::size_t>(n_rounds), 2)}));
}

TEST(SimulateSchedule, simulated_rounds_reach_and_respect_the_bound) {
  constexpr int kRounds = 300;
  for (const auto& [draft, verify] :
       std::vector<std::pair<Nanoseconds, Nanoseconds>>{{30, 10}, {10, 10}, {5, 20}}) {
    for (const int n : {1, 2, 3, 5}) {
      for (const int n_drafts : {0, 1, 2, 9}) {  // 0: one per branch; more have no work
        const SimulatedSchedule s = simulate_schedule(
            together(n, kRounds),
            {.draft = draft, .verify = verify, .n_branches = n, .n_drafts = n_drafts});
        EXPECT_EQ(s.in_turn, n * kRounds * (draft + verify));
        const double gain = static_cast<double>(s.in_turn) / static_cast<double>(s.end);
        EXPECT_LE(gain, s.bound * (1 + 1e-9)) << n << " " << n_drafts;
        EXPECT_GE(gain, s.bound * 0.97) << n << " " << n_drafts;
        if (n == 1) {
          EXPECT_EQ(s.end, s.in_turn);
        }
        if (n_drafts > 0 && n_drafts < n) continue;
        const double paper = static_cast<double>(draft + verify) / static_cast<double>(verify);
        EXPECT_DOUBLE_EQ(s.bound, std::min<double>(n, paper));
      }
    }
  }
}

TEST(SimulateSchedule, turns_keep_their_order_and_take_the_given_times) {
  const Schedule recorded = schedule(2, {{0, {3, 1, 2}}, {0, {1, 4}}, {5, {2, 2}}});
  const SimulatedSchedule s =
      simulate_schedule(recorded, {.draft = 7, .verify = 11, .n_branches = 2});
  ASSERT_EQ(s.schedule.turns.size(), recorded.turns.size());
  EXPECT_EQ(s.schedule.n_branches, 2);
  for (std::size_t i = 0; i < recorded.turns.size(); i++) {
    const ScheduleTurn &was = recorded.turns[i], &is = s.schedule.turns[i];
    EXPECT_EQ(is.run, was.run);
    EXPECT_EQ(is.step, was.step);
    EXPECT_EQ(is.n_tokens, was.n_tokens);
    EXPECT_EQ(is.n_rows, was.n_rows);
    EXPECT_EQ(is.n_accepted, was.n_accepted);
    EXPECT_EQ(is.queued - is.drafts, 7);
    EXPECT_EQ(is.forwarded - is.at_target, 11);
    EXPECT_GE(is.drafts, is.may_draft);
    EXPECT_GE(is.at_target, is.queued);
    EXPECT_LE(is.ended, s.end);
    if (is.step > 0) {
      EXPECT_EQ(is.may_draft, s.schedule.turns[i - 1].ended);
      EXPECT_EQ(is.branch, s.schedule.turns[i - 1].branch);
    }
  }
  ASSERT_EQ(s.schedule.forwards.size(), recorded.turns.size());
  Nanoseconds idle = 0, free_from = 0;
  for (const ScheduleForward& forward : s.schedule.forwards) {
    EXPECT_GE(forward.begin, free_from) << "the target runs one stage at a time";
    free_from = forward.end;
    const auto turns = s.schedule.lane_turns(forward);
    ASSERT_EQ(turns.size(), 1u);
    EXPECT_EQ(s.schedule.turns[turns[0]].at_target, forward.begin);
  }
  for (const TargetIdle& one : s.schedule.idle) idle += one.end - one.begin;
  EXPECT_EQ(idle + 11 * std::ssize(recorded.turns), s.end)
      << "the target works unless nothing waits";
}

// Three sequences of two rounds; a draft takes 3, a verification 2. The times are written by hand.
TEST(SimulateSchedule, drafts_at_the_same_time_follow_a_schedule_made_by_hand) {
  const std::map<int, std::vector<std::pair<Nanoseconds, Nanoseconds>>> by_hand{
      // begin of each draft and of its verification, round by round of each sequence
      {1, {{0, 3}, {9, 12}, {3, 6}, {12, 15}, {6, 9}, {15, 18}}},
      {2, {{0, 3}, {5, 9}, {0, 5}, {7, 11}, {3, 7}, {9, 13}}},
      {3, {{0, 3}, {5, 9}, {0, 5}, {7, 11}, {0, 7}, {9, 13}}}};
  for (const auto& [n_drafts, times] : by_hand) {
    const SimulatedSchedule s = simulate_schedule(
        together(3, 2), {.draft = 3, .verify = 2, .n_branches = 3, .n_drafts = n_drafts});
    std::vector<std::pair<Nanoseconds, Nanoseconds>> found;
    for (const ScheduleTurn& turn : s.schedule.turns)
      found.emplace_back(turn.drafts, turn.at_target);
    EXPECT_EQ(found, times) << n_drafts;
    EXPECT_EQ(s.end, n_drafts == 1 ? 20 : 15);
    EXPECT_EQ(s.in_turn, 6 * 5);
  }
}

TEST(SimulateSchedule, unverified_turns_are_left_out) {
  Schedule reported = schedule(2, {{0, {3, 1}}, {0, {1, 4}}, {0, {2}}});
  for (const std::size_t i : {3u, 4u}) reported.turns[i].forwarded = reported.turns[i].ended = -1;
  const SimulatedSchedule s =
      simulate_schedule(reported, {.draft = 1, .verify = 1, .n_branches = 2});
  ASSERT_EQ(s.schedule.turns.size(), 3u);
  EXPECT_EQ(s.schedule.turns[2].run, 6u);
  EXPECT_EQ(s.in_turn, 3 * 2);
  const SimulatedSchedule none = simulate_schedule({}, {.draft = 1, .verify = 1});
  EXPECT_EQ(none.end, 0);
  EXPECT_TRUE(none.schedule.empty());
}

// In a search, the second level starts when the first has ended.
TEST(SimulateSchedule, a_level_waits_for_the_previous_level) {
  const std::vector<RecordedSequence> levels{{0, {1, 1}}, {0, {1}}, {40, {1, 1}}, {40, {1}}};
  const auto run = [&](int n_told) {
    return simulate_schedule(schedule(n_told, levels), {.draft = 3, .verify = 4, .n_branches = 4})
        .schedule.turns;
  };
  const auto turns = run(2);
  const Nanoseconds first_level = std::max(turns[1].ended, turns[2].ended);
  EXPECT_EQ(turns[3].may_draft, first_level);
  EXPECT_EQ(turns[5].may_draft, first_level);
  EXPECT_EQ(run(1)[3].may_draft, 0) << "a recording with one branch shows no levels";
}

TEST(SimulateSchedule, a_recorded_schedule_becomes_levels_of_texts) {
  const std::vector<RecordedSequence> texts{{0, {3, 1}}, {0, {1}}, {40, {2, 2}}};
  const auto levels = scripted_levels(schedule(2, texts));
  ASSERT_EQ(levels.size(), 2u);
  ASSERT_EQ(levels[0].size(), 2u);
  EXPECT_EQ(levels[0][0].emitted, (std::vector<int>{3, 1}));
  EXPECT_EQ(levels[0][0].n_tokens, 4);
  ASSERT_EQ(levels[1].size(), 1u);
  EXPECT_EQ(levels[1][0].n_tokens, 4);
  EXPECT_EQ(scripted_levels(schedule(1, texts)).size(), 1u);
  EXPECT_TRUE(scripted_levels({}).empty());
}

TEST(SimulateSchedule, the_requested_policy_is_used) {
  const Schedule recorded = schedule(3, {{0, {4, 4}}, {0, {4, 4}}, {0, {1, 1, 1, 1, 1, 1, 1, 1}}});
  const auto order = [&](const std::string& policy) {
    const Schedule s =
        simulate_schedule(recorded, {.draft = 1, .verify = 100, .n_branches = 3, .policy = policy})
            .schedule;
    std::vector<RunId> runs;
    for (const std::uint32_t i : s.taken) runs.push_back(s.turns[i].run);
    return runs;
  };
  EXPECT_EQ(order("fcfs")[4], 6u);
  EXPECT_EQ(order("shortest")[4], 7u) << "run 7 has 1 token, run 6, which came first, has 4";
  EXPECT_THROW(order("sjf"), ContractError);
  EXPECT_THROW(simulate_schedule(recorded, {.draft = 0, .verify = 1}), ContractError);
}

}  // namespace
}  // namespace engine::test

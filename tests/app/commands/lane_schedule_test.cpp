// The order of turns in a race on the command line, and the time that each turn is charged.
#include "app/commands/lane_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace {

using app::Turn;

/// Lanes of one group, in order.
std::vector<std::size_t> lanes_in(const std::vector<Turn>& turns) {
  std::vector<std::size_t> lanes;
  for (const Turn& turn : turns) lanes.push_back(turn.lane);
  return lanes;
}

TEST(RaceTurns, lanes_alternate_prompt_by_prompt) {
  const std::vector<bool> lanes{false, false, false};
  EXPECT_EQ(lanes_in(app::lane_turns(0, 1, 0, lanes)), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(lanes_in(app::lane_turns(1, 1, 0, lanes)), (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(lanes_in(app::lane_turns(1, 1, 1, lanes)), (std::vector<std::size_t>{2, 0, 1}));
}

TEST(RaceTurns, a_batch_lane_does_not_change_the_order_of_others) {
  const std::vector<bool> mixed{false, true, false};
  std::vector<Turn> others, alone;
  for (const Turn& turn : app::lane_turns(3, 3, 0, mixed))
    if (turn.lane != 1) others.push_back(turn);
  for (std::size_t text = 0; text < 3; text++) {
    for (const Turn& turn : app::lane_turns(3 + text, 1, 0, {false, false, false}))
      if (turn.lane != 1) alone.push_back({turn.lane, text, 1});
  }
  EXPECT_EQ(others, alone);
}

TEST(RaceTurns, every_lane_decodes_every_prompt_once_per_repeat) {
  for (std::size_t n_texts = 1; n_texts <= 4; n_texts++) {
    for (std::size_t first = 0; first < 9; first++) {
      for (int repeat = 0; repeat < 3; repeat++) {
        std::multiset<std::pair<std::size_t, std::size_t>> decoded;
        for (const Turn& turn :
             app::lane_turns(first, n_texts, repeat, {false, true, false, true})) {
          EXPECT_EQ(turn.n_texts, turn.lane % 2 ? n_texts : 1);
          for (std::size_t i = 0; i < turn.n_texts; i++) decoded.emplace(turn.lane, turn.text + i);
        }
        EXPECT_EQ(decoded.size(), 4 * n_texts);
        for (const auto& one : decoded) EXPECT_EQ(decoded.count(one), 1u);
      }
    }
  }
}

TEST(RaceTurns, a_batch_lane_is_not_always_first_or_last) {
  std::map<std::size_t, int> n_before;  // sequences of the other lane, in groups of three
  for (std::size_t group = 0; group < 60; group++) {
    const std::vector<Turn> turns = app::lane_turns(3 * group, 3, 0, {false, true});
    const auto its = std::ranges::find(turns, Turn{1, 0, 3});
    n_before[static_cast<std::size_t>(its - turns.begin())]++;
  }
  EXPECT_EQ(n_before, (std::map<std::size_t, int>{{0, 10}, {1, 20}, {2, 20}, {3, 10}}));
}

TEST(RaceTurns, concurrent_sequences_are_charged_wall_time_once) {
  const std::map<std::string, double> figures{
      {"wall_ms", 100}, {"prefill_ms", 30}, {"draft_prefill_ms", 10}, {"target_busy_ms", 60}};
  EXPECT_DOUBLE_EQ(app::decode_wall_ms(figures, 3), 80) << "drafting overlaps with verification";
  EXPECT_DOUBLE_EQ(app::decode_wall_ms(figures, 1), 70) << "one sequence waits for both stages";
}

}  // namespace

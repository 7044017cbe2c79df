#include "engine/decode/draft/tree_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/data/random.h"

namespace engine {
namespace {

/// A simulated machine and draft: the time of a step by its number of rows, and the probability
/// that the candidate of each rank is the target's token.
struct World {
  const char* name;
  std::function<double(int rows)> step;
  double draft_forward = 0.05;  // one level
  std::vector<double> kept;     // acceptance probability by rank
};

double cost_of(const World& world, const LevelCounts& tree) {
  return world.step(rows_of(tree)) + world.draft_forward * static_cast<double>(tree.size());
}

double tokens_of(const World& world, const LevelCounts& tree) {
  double below = 1;
  for (auto k = tree.rbegin(); k != tree.rend(); ++k) {
    double share = 0;
    for (std::size_t rank = 0; static_cast<int>(rank) < *k && rank < world.kept.size(); rank++)
      share += world.kept[rank];
    below = 1 + share * below;
  }
  return below;
}

double rate_of(const World& world, const LevelCounts& tree) {
  return tokens_of(world, tree) / cost_of(world, tree);
}

double best_rate(const World& world) {
  double most = 0;
  for (const LevelCounts& tree : trees_to_choose()) most = std::max(most, rate_of(world, tree));
  return most;
}

constexpr auto ns_of = [](double ms) { return static_cast<Nanoseconds>(ms * 1e6); };

/// Simulates steps in a World.
class Player {
 public:
  explicit Player(std::uint64_t seed, double spikes = 0) : rng_(seed), spikes_(spikes) {}

  /// The steps that a calibration measures.
  void calibrate(const World& world) {
    for (const int rows : {1, 2, 4, 8, 16}) control_.costs().add(rows, noisy(world.step(rows)));
  }

  /// Simulates a step. A share of `spikes_` of the steps appear to take twice their time.
  void step(const World& world) {
    const std::vector<SizePlan> plans = known_.plans(trees_to_choose(), control_);
    const SizeChoice choice = known_.choose(plans);
    const LevelCounts& tree = trees_to_choose()[choice.index];
    for (std::size_t level = 0; level < tree.size(); level++)
      known_.add_forward({.begun = 0, .ended = ns_of(noisy(world.draft_forward)), .n_rows = 1});
    control_.costs().add(rows_of(tree), noisy(world.step(rows_of(tree))));
    const int n_tokens = 1 + n_kept(world, tree);
    known_.came(n_tokens, plans[choice.index].ms / plans[0].ms);
    time_ += cost_of(world, tree);
    tokens_ += n_tokens;
  }
  double take_rate() {
    const double rate = tokens_ / time_;
    tokens_ = time_ = 0;
    return rate;
  }

 private:
  double draw() { return rng_.bits() * 0x1p-32; }
  double noisy(double ms) { return ms * (1 + 0.02 * draw()) * (draw() < spikes_ ? 2 : 1); }

  int n_kept(const World& world, const LevelCounts& tree) {
    int n = 0;
    for (const int n_children : tree) {
      double left = draw();
      int kept = -1;
      for (int rank = 0; rank < n_children && kept < 0; rank++) {
        const auto r = static_cast<std::size_t>(rank);
        const double share = r < world.kept.size() ? world.kept[r] : 0;
        if (left < share) kept = rank;
        left -= share;
      }
      known_.add_verified(n_children, kept);
      if (kept < 0) return n;
      n++;
    }
    return n;
  }

  Random rng_;
  double spikes_;
  StepControl control_;
  DraftKnowledge known_;
  double time_ = 0, tokens_ = 0;
};

const std::vector<World>& worlds() {
  static const std::vector<World> all = {
      {"rows are free, as on a GPU", [](int) { return 7.0; }, 0.1, {0.65, 0.15, 0.06, 0.03}},
      {"two cores with AMX", [](int rows) { return 7.4 + 0.15 * rows; }, 0.02, {0.6, 0.15, 0.05}},
      {"fast memory", [](int rows) { return 3.0 + 0.32 * rows; }, 0.01, {0.55, 0.15, 0.05}},
      {"a jump after five rows",
       [](int rows) { return rows <= 5 ? 3.3 + 0.1 * rows : 4.4 + 0.1 * rows; },
       0.01,
       {0.6, 0.1}},
      {"weights in the cache, each row costs a step",
       [](int rows) { return 1.0 * rows; },
       0.02,
       {0.7, 0.1}},
      {"a draft that is always right", [](int rows) { return 5 + 0.2 * rows; }, 0.02, {1.0}},
      {"a draft that is never right", [](int rows) { return 5 + 0.2 * rows; }, 0.02, {0.0}},
      {"an expensive draft", [](int rows) { return 5 + 0.2 * rows; }, 4, {0.6, 0.1}},
      {"a draft that costs a step", [](int rows) { return 5 + 0.2 * rows; }, 5, {0.6, 0.1}},
  };
  return all;
}

/// Tokens per time of n_steps steps, learning included, relative to the best tree. Mean over seeds.
double share_of_best(const World& world, int n_steps, double spikes) {
  constexpr int kSeeds = 6;
  double rate = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; seed++) {
    Player player(seed, spikes);
    player.calibrate(world);
    for (int i = 0; i < n_steps; i++) player.step(world);
    rate += player.take_rate() / kSeeds;
  }
  return rate / best_rate(world);
}

TEST(DraftKnowledge, learning_costs_little) {
  for (const World& world : worlds()) EXPECT_GE(share_of_best(world, 300, 0), 0.93) << world.name;
}

TEST(DraftKnowledge, rare_slow_steps_do_not_mislead_it) {
  for (const World& world : worlds()) EXPECT_GE(share_of_best(world, 300, 0.1), 0.9) << world.name;
}

TEST(DraftKnowledge, drafts_little_where_drafts_do_not_pay) {
  for (const World& world : worlds()) {
    if (best_rate(world) * world.step(1) > 1.001) continue;
    Player player(1);
    player.calibrate(world);
    for (int i = 0; i < 200; i++) player.step(world);
    player.take_rate();
    for (int i = 0; i < 200; i++) player.step(world);
    EXPECT_GE(player.take_rate() * world.step(1), 0.97) << world.name;
  }
}

TEST(DraftKnowledge, adapts_when_rows_become_slower) {
  const World& before = worlds()[1];
  World after = before;
  after.step = [](int rows) { return 2.0 + 1.2 * rows; };
  Player player(3);
  player.calibrate(before);
  for (int i = 0; i < 300; i++) player.step(before);
  for (int i = 0; i < 400; i++) player.step(after);
  player.take_rate();
  for (int i = 0; i < 200; i++) player.step(after);
  EXPECT_GE(player.take_rate(), 0.88 * best_rate(after));
  for (int i = 0; i < 400; i++) player.step(before);
  player.take_rate();
  for (int i = 0; i < 200; i++) player.step(before);
  EXPECT_GE(player.take_rate(), 0.88 * best_rate(before));
}

TEST(DraftKnowledge, expected_tokens_follow_observed_acceptance) {
  DraftKnowledge known;
  const StepControl control;
  const std::vector<LevelCounts> trees{{}, {1}, {2, 1}};
  for (int i = 0; i < 4000; i++) known.add_verified(2, i % 2 == 0 ? 0 : i % 4 == 1 ? 1 : -1);
  const std::vector<SizePlan> plans = known.plans(trees, control);
  EXPECT_EQ(plans[0].tokens, 1);
  EXPECT_NEAR(plans[1].tokens, 1.5, 0.03);
  EXPECT_NEAR(plans[2].tokens, 1 + 0.75 * 1.5, 0.06);
  EXPECT_GT(plans[2].hoped, plans[2].tokens);
  EXPECT_THROW(known.add_verified(2, 2), ContractError);
}

// SEED: while the target verifies other texts, drafting costs nothing until it takes longer.
TEST(DraftKnowledge, drafts_more_while_the_target_verifies) {
  DraftKnowledge known;
  StepControl control;
  for (int i = 0; i < 50; i++) {
    for (const int rows : {1, 2, 4, 8, 16}) control.costs().add(rows, 8 + 0.1 * rows);
    known.add_forward({.begun = 0, .ended = ns_of(3), .n_rows = 1});
    known.add_verified(1, i % 4 == 0 ? -1 : 0);
  }
  const auto longest = [&] {
    const std::vector<SizePlan> plans = known.plans(chains_to_choose(), control);
    const auto rate = [](const SizePlan& plan) { return plan.tokens / plan.ms; };
    return std::ranges::max_element(plans, {}, rate) - plans.begin();
  };
  const auto in_turn = longest();
  EXPECT_NEAR(control.round_ms(3, 8), 11, 1e-9);
  control.set_overlapped(3);
  EXPECT_NEAR(control.round_ms(3, 8), 8, 1e-9) << "the target works all the time";
  EXPECT_NEAR(control.round_ms(9, 8), 9, 1e-9);
  control.set_lanes(3);
  EXPECT_NEAR(control.round_ms(3, 8), 9, 1e-9) << "a branch waits for its whole verification";
  control.set_lanes(1);
  EXPECT_GT(longest(), in_turn);
  // The times beside another model are learned apart from the others.
  for (int i = 0; i < 50; i++) control.costs().add(1, 16);
  EXPECT_NEAR(control.ms(1), 16, 1);
  control.set_overlapped(3, 2);
  EXPECT_NEAR(control.round_ms(30, 8), 15, 1e-9) << "both drafters work all the time";
  EXPECT_NEAR(control.round_ms(10, 8), 8, 1e-9) << "the target works all the time";
  control.set_overlapped(0);
  EXPECT_NEAR(control.ms(1), 8.1, 0.5);
}

TEST(DraftKnowledge, reading_a_prompt_is_spread_over_the_tokens) {
  DraftKnowledge known;
  StepControl control;
  EXPECT_EQ(known.reading_ms(100, 50, control), 0) << "no prompt is timed";
  known.add_reading(100, 20);
  EXPECT_EQ(known.reading_ms(100, 50, control), 0) << "the target's steps are not measured";
  control.costs().add(1, 10);
  EXPECT_NEAR(known.reading_ms(100, 50, control), 20.0 / 50, 1e-9) << "no sequence has ended";
  EXPECT_NEAR(known.reading_ms(300, 50, control), 60.0 / 50, 1e-9);
  known.sequence_ended(10, true);
  EXPECT_NEAR(known.reading_ms(100, 50, control), 20.0 / 10, 1e-9);
  EXPECT_NEAR(known.reading_ms(100, 4, control), 20.0 / 4, 1e-9) << "no more tokens may come";
  // Each token of a tree bears its share; a step without drafts bears none.
  const std::vector<LevelCounts> trees{{}, {1}, {2, 1}};
  const std::vector<SizePlan> read = known.plans(trees, control);
  const std::vector<SizePlan> unread = known.plans(trees, control, 2);
  EXPECT_EQ(unread[0].ms, read[0].ms);
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(unread[i].tokens, read[i].tokens);
    EXPECT_NEAR(unread[i].ms - read[i].ms, 2 * read[i].tokens, 1e-9);
  }
  // While the target verifies other sequences, the draft has time to read.
  control.set_overlapped(3);
  EXPECT_LT(known.plans(trees, control, 2)[1].ms - known.plans(trees, control)[1].ms,
            2 * read[1].tokens);
  control.set_overlapped(0);
  // Sequences whose prompts are not read give no measurement: the expected time decays.
  for (int i = 0; i < 200; i++) known.sequence_ended(10, false);
  EXPECT_LT(known.reading_ms(100, 50, control), 0.1);
  known.add_reading(100, 20);
  EXPECT_NEAR(known.reading_ms(100, 50, control), 20.0 / 10, 1e-9);
}

TEST(DraftKnowledge, its_trees_have_at_most_28_tokens) {
  EXPECT_EQ(rows_of({2, 2, 1}), 11);
  for (const LevelCounts& tree : trees_to_choose()) EXPECT_LE(rows_of(tree), 29);
  EXPECT_TRUE(trees_to_choose().front().empty());
  EXPECT_TRUE(chains_to_choose().front().empty());
  EXPECT_EQ(chains_to_choose().back().size(), 16U);
}

}  // namespace
}  // namespace engine

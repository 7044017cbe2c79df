#include "engine/decode/draft/tree_tuner.h"

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
  for (const LevelCounts& tree : sized_trees()) most = std::max(most, rate_of(world, tree));
  return most;
}

/// Simulates steps in a World.
class Player {
 public:
  explicit Player(std::uint64_t seed, double spikes = 0) : rng_(seed), spikes_(spikes) {}

  /// Simulates a step. A share of `spikes_` of the steps appear to take twice their time.
  void step(TreeTuner& tuner, const World& world) {
    const int place = tuner.choose();
    const LevelCounts& tree = tuner.tree(place);
    double cost = cost_of(world, tree) * (1 + 0.02 * draw());
    if (draw() < spikes_) cost *= 2;
    tuner.add_cost(place, cost);
    time_ += cost_of(world, tree);
    tokens_ += 1;
    for (const int n_children : tree) {
      double left = draw();
      int kept = -1;
      for (int rank = 0; rank < n_children && kept < 0; rank++) {
        const auto r = static_cast<std::size_t>(rank);
        const double share = r < world.kept.size() ? world.kept[r] : 0;
        if (left < share) kept = rank;
        left -= share;
      }
      tuner.add_verified(n_children, kept);
      if (kept < 0) return;
      tokens_ += 1;
    }
  }
  double rate() const { return tokens_ / time_; }

 private:
  double draw() { return rng_.bits() * 0x1p-32; }

  Random rng_;
  double spikes_;
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
  };
  return all;
}

TEST(TreeTuner, keeps_a_tree_within_5_percent_of_the_best) {
  for (const World& world : worlds())
    for (std::uint64_t seed = 1; seed <= 5; seed++) {
      TreeTuner tuner;
      Player player(seed);
      for (int i = 0; i < 400; i++) player.step(tuner, world);
      EXPECT_GE(rate_of(world, tuner.tree(tuner.best())), 0.95 * best_rate(world))
          << world.name << ": found " << name_of(tuner.tree(tuner.best())) << ", seed " << seed;
    }
}

/// Tokens per time of n_steps steps, exploration included, relative to the best tree. Mean over
/// seeds.
double share_of_best(const World& world, int n_steps, double spikes) {
  constexpr int kSeeds = 10;
  double rate = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; seed++) {
    TreeTuner tuner;
    Player player(seed, spikes);
    for (int i = 0; i < n_steps; i++) player.step(tuner, world);
    rate += player.rate() / kSeeds;
  }
  return rate / best_rate(world);
}

TEST(TreeTuner, exploration_costs_little) {
  for (const World& world : worlds()) EXPECT_GE(share_of_best(world, 300, 0), 0.93) << world.name;
}

TEST(TreeTuner, rare_slow_steps_do_not_mislead_it) {
  for (const World& world : worlds()) EXPECT_GE(share_of_best(world, 300, 0.1), 0.9) << world.name;
}

TEST(TreeTuner, adapts_when_rows_become_slower) {
  const World& before = worlds()[1];
  World after = before;
  after.step = [](int rows) { return 2.0 + 1.2 * rows; };
  TreeTuner tuner;
  Player player(3);
  for (int i = 0; i < 300; i++) player.step(tuner, before);
  for (int i = 0; i < 300; i++) player.step(tuner, after);
  EXPECT_GE(rate_of(after, tuner.tree(tuner.best())), 0.9 * best_rate(after))
      << "found " << name_of(tuner.tree(tuner.best()));
  for (int i = 0; i < 300; i++) player.step(tuner, before);
  EXPECT_GE(rate_of(before, tuner.tree(tuner.best())), 0.9 * best_rate(before))
      << "found " << name_of(tuner.tree(tuner.best()));
}

TEST(TreeTuner, expected_tokens_follow_observed_acceptance) {
  TreeTuner tuner({{1}, {2, 1}});
  for (int i = 0; i < 400; i++) tuner.add_verified(2, i % 2 == 0 ? 0 : i % 4 == 1 ? 1 : -1);
  // The prior rates, 0.6 and 0.12, weigh as much as eight nodes.
  const double first = (200 + 8 * 0.6) / 408, second = (100 + 8 * 0.12) / 408;
  EXPECT_NEAR(tuner.expected_tokens(0), 1 + first, 1e-9);
  EXPECT_NEAR(tuner.expected_tokens(1), 1 + (first + second) * (1 + first), 1e-9);
}

TEST(TreeTuner, a_single_tree_needs_no_choice) {
  TreeTuner tuner({{2, 1}});
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(tuner.choose(), 0);
    tuner.add_cost(0, 1);
    tuner.add_verified(2, -1);
  }
  EXPECT_EQ(tuner.best(), 0);
}

TEST(TreeTuner, trees_are_named_and_counted_by_k_config) {
  EXPECT_EQ(name_of({2, 2, 1}), "2,2,1");
  EXPECT_EQ(rows_of({2, 2, 1}), 11);
  using Trees = std::vector<LevelCounts>;
  for (const Trees& trees : {Trees{}, Trees{{1}, {}}, Trees{{5}}, Trees{{1, 0}}})
    EXPECT_THROW(TreeTuner{trees}, ContractError);
}

}  // namespace
}  // namespace engine

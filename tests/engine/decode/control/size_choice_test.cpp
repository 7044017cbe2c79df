#include "engine/decode/control/size_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/data/random.h"
#include "engine/decode/control/rate.h"

namespace engine {
namespace {

/// A simulated machine: the time of a step by its rows.
struct Machine {
  const char* name;
  std::function<double(int rows)> ms;
};

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {
      {"rows are free", [](int) { return 7.0; }},
      {"linear, cheap", [](int rows) { return 10 + 0.3 * rows; }},
      {"linear", [](int rows) { return 10 + 1.5 * rows; }},
      {"blocks of four rows", [](int rows) { return 8 + 3.0 * ((rows + 3) / 4); }},
      {"free up to four rows, then steep",
       [](int rows) { return 10 + 4.0 * std::max(0, rows - 4); }},
      {"each row costs a step", [](int rows) { return 3.0 * rows; }},
  };
  return all;
}

constexpr int kMost = 16;  // tokens of a guess

double tokens_of(double right, int n) {
  double tokens = 1, path = 1;
  for (int i = 0; i < n; i++) tokens += path *= right;
  return tokens;
}

/// Tokens per ms of the best fixed number of guessed tokens.
double best_rate(const Machine& machine, double right) {
  double best = 0;
  for (int n = 0; n <= kMost; n++) best = std::max(best, tokens_of(right, n) / machine.ms(1 + n));
  return best;
}

/// Decodes with guesses whose tokens are right with a probability; the cost model is learned from
/// the steps.
class ChainPlayer {
 public:
  /// @param sees_more  the target's own token tells whether the next guessed token was right, as
  ///                   with guesses that cost nothing to make
  ChainPlayer(std::uint64_t seed, bool sees_more) : rng_(seed), sees_more_(sees_more) {}

  void calibrate(const Machine& machine) {
    for (const int rows : {1, 2, 4, 8, 16}) control_.costs().add(rows, noisy(machine.ms(rows)));
  }

  void step(const Machine& machine, double right) {
    std::vector<SizePlan> plans{{1, 1, control_.ms(1)}};
    double path = 1, hoped = 1;
    for (int n = 1; n <= kMost; n++) {
      path *= rate_.mean(), hoped *= rate_.hoped();
      plans.push_back({plans.back().tokens + path, plans.back().hoped + hoped, control_.ms(1 + n)});
    }
    const SizeChoice choice = chooser_.choose(plans);
    last_ = static_cast<int>(choice.index);
    int n_right = 0;
    while (n_right < last_ && draw() < right) n_right++;
    for (int i = 0; i < n_right; i++) rate_.add(true);
    if (n_right < last_)
      rate_.add(false);
    else if (sees_more_ && last_ < kMost)
      rate_.add(draw() < right);
    rate_.fade();
    chooser_.came(n_right + 1, plans[choice.index].ms / plans[0].ms);
    control_.costs().add(1 + last_, noisy(machine.ms(1 + last_)));
    time_ += machine.ms(1 + last_);
    tokens_ += n_right + 1;
  }

  /// Tokens per ms since the last call.
  double take_rate() {
    const double rate = tokens_ / time_;
    tokens_ = time_ = 0;
    return rate;
  }
  int last() const { return last_; }

 private:
  double draw() { return rng_.bits() * 0x1p-32; }
  double noisy(double ms) { return ms * (1 + 0.04 * draw()) * (draw() < 0.03 ? 1.8 : 1); }

  Random rng_;
  bool sees_more_;
  StepControl control_;
  Rate rate_{0.3};
  SizeChooser chooser_;
  double time_ = 0, tokens_ = 0;
  int last_ = 0;
};

constexpr int kSeeds = 6;

/// Mean over seeds of the rate of `n_steps` steps relative to the best fixed size.
double share_of_best(const Machine& machine, double right, int n_steps, bool sees_more) {
  double share = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; seed++) {
    ChainPlayer player(seed, sees_more);
    player.calibrate(machine);
    for (int i = 0; i < n_steps; i++) player.step(machine, right);
    share += player.take_rate() / best_rate(machine, right) / kSeeds;
  }
  return share;
}

TEST(SizeChooser, learning_costs_a_few_percent) {
  for (const Machine& machine : machines()) {
    for (int tenths = 0; tenths <= 9; tenths++) {
      for (const bool sees_more : {true, false}) {
        const double share = share_of_best(machine, tenths / 10.0, 300, sees_more);
        EXPECT_GE(share, 0.93) << machine.name << ", acceptance 0." << tenths << " " << sees_more;
      }
    }
  }
}

TEST(SizeChooser, never_loses_to_plain_decoding) {
  for (const Machine& machine : machines()) {
    for (int tenths = 0; tenths <= 9; tenths++) {
      double worst = 10, mean = 0, later = 0;
      for (std::uint64_t seed = 1; seed <= kSeeds; seed++) {
        ChainPlayer player(seed, false);
        player.calibrate(machine);
        for (int i = 0; i < 96; i++) player.step(machine, tenths / 10.0);  // a short text
        const double share = player.take_rate() * machine.ms(1);
        worst = std::min(worst, share), mean += share / kSeeds;
        for (int i = 0; i < 400; i++) player.step(machine, tenths / 10.0);  // further texts
        later += player.take_rate() * machine.ms(1) / kSeeds;
      }
      EXPECT_GE(mean, 0.95) << machine.name << ", acceptance 0." << tenths;
      EXPECT_GE(later, 0.97) << machine.name << ", acceptance 0." << tenths;
      EXPECT_GE(worst, 0.85) << machine.name << ", acceptance 0." << tenths;
    }
  }
}

TEST(SizeChooser, chooses_none_where_rows_cost_too_much) {
  const Machine& steep = machines().back();
  ChainPlayer player(1, false);
  player.calibrate(steep);
  for (int i = 0; i < 200; i++) player.step(steep, 0.4);
  int n_guessed = 0;
  for (int i = 0; i < 100; i++) player.step(steep, 0.4), n_guessed += player.last() > 0;
  EXPECT_LE(n_guessed, 8) << "probes only";
}

TEST(SizeChooser, recovers_when_guesses_become_right_in_mid_text) {
  for (const bool sees_more : {true, false}) {
    for (const std::size_t m : {1U, 2U, 3U}) {
      const Machine& machine = machines()[m];
      ChainPlayer player(2, sees_more);
      player.calibrate(machine);
      for (int i = 0; i < 200; i++) player.step(machine, 0.02);
      EXPECT_GE(player.take_rate() / best_rate(machine, 0.02), 0.95);
      for (int i = 0; i < 120; i++) player.step(machine, 0.9);
      player.take_rate();
      for (int i = 0; i < 100; i++) player.step(machine, 0.9);
      EXPECT_GE(player.take_rate() / best_rate(machine, 0.9), 0.87) << machine.name << sees_more;
    }
  }
}

TEST(SizeChooser, follows_a_change_of_the_machine) {
  const Machine &before = machines()[1], &after = machines().back();
  ChainPlayer player(3, true);
  player.calibrate(before);
  for (int i = 0; i < 150; i++) player.step(before, 0.5);
  for (int i = 0; i < 300; i++) player.step(after, 0.5);
  player.take_rate();
  for (int i = 0; i < 150; i++) player.step(after, 0.5);
  EXPECT_GE(player.take_rate() / best_rate(after, 0.5), 0.9);
}

// With a size per step, a good guess is used even if plain decoding is better for most steps.
TEST(SizeChooser, a_step_is_chosen_by_the_worth_of_time) {
  SizeChooser chooser;
  const std::vector<SizePlan> poor{{1, 1, 10}, {1.1, 1.1, 12}}, good{{1, 1, 10}, {1.9, 1.9, 12}};
  EXPECT_EQ(chooser.choose(poor).index, 0U);
  EXPECT_EQ(chooser.choose(good).index, 1U);
}

TEST(SizeChooser, probes_end_with_their_budget) {
  SizeChooser chooser;
  // hopes for much, and always loses half a token
  const std::vector<SizePlan> plans{{1, 1, 10}, {1, 3, 15}};
  int n_probes = 0;
  for (int i = 0; i < 1000; i++) {
    n_probes += chooser.choose(plans).probe;
    chooser.came(1, 1);
  }
  EXPECT_GE(n_probes, 8);
  EXPECT_LE(n_probes, 20);  // 0.8 % of 1000 tokens, half a token each, and the first budget
}

/// A model whose block of `n` rows has its first k guesses right with the probability of a
/// consistency model: each row is right with `right` after one refinement, with none before.
class BlockPlayer {
 public:
  BlockPlayer(std::uint64_t seed, const Machine& machine, LastingSize::Kind kind)
      : rng_(seed),
        machine_(machine),
        control_(CostModel(machine.ms)),
        kind_(kind),
        size_(use_, "test", kind) {}

  /// One block, or one step of a window.
  void play(double right) {
    const int n = size_.choose();
    last_ = n;
    int left = n;
    do {
      const int n_tokens =
          1 + n_right(kind_ == LastingSize::Kind::Block && left == n ? 0 : right, left);
      size_.came(left, n_tokens);
      time_ += machine_.ms(left), tokens_ += n_tokens;
      left -= n_tokens;
    } while (kind_ == LastingSize::Kind::Block && left > 0);
    if (kind_ == LastingSize::Kind::Block) size_.block_ended(n);
  }
  double take_rate() {
    const double rate = tokens_ / time_;
    tokens_ = time_ = 0;
    return rate;
  }
  int last() const { return last_; }

 private:
  int n_right(double right, int rows) {
    int n = 0;
    while (n + 1 < rows && rng_.bits() * 0x1p-32 < right) n++;
    return n;
  }

  Random rng_;
  const Machine& machine_;
  StepControl control_;
  ControlUse use_{&control_};
  LastingSize::Kind kind_;
  LastingSize size_;
  int last_ = 0;
  double time_ = 0, tokens_ = 0;
};

/// Tokens per ms of a fixed size, by simulation.
double fixed_rate(const Machine& machine, double right, int size, LastingSize::Kind kind) {
  Random rng(77);
  double time = 0, tokens = 0;
  for (int i = 0; i < 300; i++) {
    int left = size;
    do {
      int n = 1;
      const double p = kind == LastingSize::Kind::Block && left == size ? 0 : right;
      while (n < left && rng.bits() * 0x1p-32 < p) n++;
      time += machine.ms(left), tokens += n, left -= n;
    } while (kind == LastingSize::Kind::Block && left > 0);
  }
  return tokens / time;
}

// The time of a probe is that of all steps until the block's last token is final.
TEST(SizeHistory, an_unknown_block_takes_the_steps_of_its_refined_guesses) {
  const StepControl control{CostModel([](int rows) { return 10.0 + rows; })};
  SizeHistory wrong({1, 2, 4, 8}, true), right = wrong;
  for (int i = 0; i < 400; i++) wrong.add_refined(3, 1), right.add_refined(3, 3);
  const SizePlan in_vain = wrong.plans(control).at(2), fast = right.plans(control).at(2);
  EXPECT_EQ(in_vain.tokens, 4);
  EXPECT_EQ(in_vain.steps, 4);
  EXPECT_NEAR(in_vain.ms, 14 + 13 + 12 + 11, 1e-9);
  EXPECT_LT(in_vain.hoped, 4.3);
  EXPECT_EQ(fast.tokens, 4);
  EXPECT_LE(fast.steps, 3);
  EXPECT_LE(fast.ms, 14 + 13 + 11);
  EXPECT_GE(fast.hoped, fast.tokens);
  EXPECT_EQ(right.plans(control).size(), 3U) << "sizes up to 4";
}

TEST(LastingSize, finds_a_size_near_the_best) {
  const BlockKnowledge known;
  for (const auto kind : {LastingSize::Kind::Block, LastingSize::Kind::Window}) {
    for (const Machine& machine : machines()) {
      for (const double right : {0.05, 0.5, 0.9}) {
        double best = 0;
        for (const int size : known.history.sizes())
          best = std::max(best, fixed_rate(machine, right, size, kind));
        double whole = 0, later = 0;
        for (std::uint64_t seed = 1; seed <= kSeeds; seed++) {
          BlockPlayer player(seed, machine, kind);
          for (int i = 0; i < 150; i++) player.play(right);
          whole += player.take_rate() / best / kSeeds;
          for (int i = 0; i < 150; i++) player.play(right);
          later += player.take_rate() / best / kSeeds;
        }
        const std::string what = std::string(machine.name) + ", right " + std::to_string(right) +
                                 (kind == LastingSize::Kind::Block ? ", blocks" : ", windows");
        EXPECT_GE(whole, 0.88) << what;
        EXPECT_GE(later, 0.92) << what;
      }
    }
  }
}

TEST(LastingSize, stays_plain_where_no_block_pays) {
  for (const auto kind : {LastingSize::Kind::Block, LastingSize::Kind::Window}) {
    const Machine& machine = machines()[2];
    BlockPlayer player(5, machine, kind);
    for (int i = 0; i < 96; i++) player.play(0.05);
    EXPECT_GE(player.take_rate() * machine.ms(1), 0.93);
    int n_plain = 0;
    for (int i = 0; i < 200; i++) player.play(0.05), n_plain += player.last() == 1;
    EXPECT_GE(n_plain, 180);
    EXPECT_GE(player.take_rate() * machine.ms(1), 0.97);
  }
}

TEST(Rate, forgets_and_hopes) {
  Rate rate(0.5);
  EXPECT_DOUBLE_EQ(rate.mean(), 0.5);
  for (int i = 0; i < 500; i++) rate.add(false);
  EXPECT_LT(rate.mean(), 0.03);
  EXPECT_LT(rate.hoped(), 0.08);
  for (int i = 0; i < 60; i++) rate.add(true);
  EXPECT_NEAR(rate.mean(), 0.7, 0.1) << "the last observations weigh most";
  for (int i = 0; i < 5000; i++) rate.fade();
  EXPECT_NEAR(rate.mean(), 0.5, 0.01) << "back to the prior";
}

}  // namespace
}  // namespace engine

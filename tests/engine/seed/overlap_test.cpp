// Tests the rule that decides whether SEED's drafting and verification overlap, with given times
// and in the simulator, where stage times depend on the mode.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/seed/overlap.h"
#include "engine/seed/rounds_simulator.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

/// A round of which half is drafting, so overlap can gain time.
RoundTime round(Nanoseconds whole) {
  return {.whole = whole * 1000, .drafting = whole * 500};
}

/// Time per sequence of a round in each mode.
struct Costs {
  Nanoseconds in_turn = 0, at_once = 0;
};

bool overlaps(const ModeChoice& choice) {
  return choice.mode() == ModeChoice::Overlapped;
}

bool keeps_overlapped(const ModeChoice& choice) {
  return choice.kept() == ModeChoice::Overlapped;
}

/// @return  the number of overlapped rounds
int feed(ModeChoice& choice, const Costs& costs, int n) {
  int n_at_once = 0;
  for (int i = 0; i < n; i++) {
    n_at_once += overlaps(choice);
    choice.measured(round(overlaps(choice) ? costs.at_once : costs.in_turn));
  }
  return n_at_once;
}

TEST(ModeChoice, starts_in_turn_and_overlaps_where_faster) {
  ModeChoice choice;
  EXPECT_FALSE(overlaps(choice));
  EXPECT_GT(feed(choice, {.in_turn = 100, .at_once = 60}, 200), 180);
  EXPECT_TRUE(keeps_overlapped(choice));
  EXPECT_NEAR(choice.ms(ModeChoice::InTurn), 0.1, 0.001);
  EXPECT_NEAR(choice.ms(ModeChoice::Overlapped), 0.06, 0.001);
  EXPECT_EQ(choice.n_changes(), 1);
  EXPECT_TRUE(choice.is_decided());
}

// The rounds in a slower mode cost less than 0.8 % of the time.
TEST(ModeChoice, probes_rarely_where_overlap_does_not_pay) {
  for (const Nanoseconds at_once : {105, 120, 170, 500}) {
    ModeChoice choice;
    feed(choice, {.in_turn = 100, .at_once = at_once}, 20);
    const int n_lost = feed(choice, {.in_turn = 100, .at_once = at_once}, 2000);
    EXPECT_FALSE(keeps_overlapped(choice));
    EXPECT_GE(n_lost, 1) << "it still probes";
    EXPECT_LE(n_lost * (at_once - 100), 0.008 * 2000 * 100) << at_once;
    EXPECT_EQ(choice.n_changes(), 0);
  }
}

TEST(ModeChoice, an_insignificant_gain_changes_nothing) {
  ModeChoice in_turn;
  feed(in_turn, {.in_turn = 100, .at_once = 99}, 500);
  EXPECT_FALSE(keeps_overlapped(in_turn));
  ModeChoice at_once;
  feed(at_once, {.in_turn = 100, .at_once = 90}, 20);
  ASSERT_TRUE(keeps_overlapped(at_once));
  feed(at_once, {.in_turn = 89, .at_once = 90}, 1000);
  EXPECT_TRUE(keeps_overlapped(at_once));
  EXPECT_EQ(at_once.n_changes(), 1);
}

TEST(ModeChoice, a_load_common_to_both_modes_changes_nothing) {
  ModeChoice choice;
  feed(choice, {.in_turn = 100, .at_once = 140}, 50);
  const int n_lost = feed(choice, {.in_turn = 200, .at_once = 280}, 100);
  EXPECT_LE(n_lost, 4);
  EXPECT_FALSE(keeps_overlapped(choice));
  EXPECT_NEAR(choice.ms(ModeChoice::InTurn), 0.2, 0.002);
}

TEST(ModeChoice, detects_changes_in_both_directions) {
  ModeChoice choice;
  feed(choice, {.in_turn = 100, .at_once = 60}, 500);
  ASSERT_TRUE(keeps_overlapped(choice));
  feed(choice, {.in_turn = 110, .at_once = 180}, 20);
  EXPECT_FALSE(keeps_overlapped(choice)) << "the kept mode became slower";
  feed(choice, {.in_turn = 110, .at_once = 50}, 1000);
  EXPECT_TRUE(keeps_overlapped(choice)) << "a rare probe finds it";
  EXPECT_LE(choice.n_changes(), 5);
}

TEST(ModeChoice, rare_slow_rounds_do_not_mislead_it) {
  ModeChoice choice;
  int n_at_once = 0;
  for (int i = 0; i < 2000; i++) {
    const Nanoseconds usual = overlaps(choice) ? 80 : 100;
    n_at_once += overlaps(choice);
    choice.measured(round(i % 7 == 5 ? 5 * usual : usual));
  }
  EXPECT_GT(n_at_once, 1600);
}

// Drafting takes so small a part of a round that hiding it would not gain the required margin.
TEST(ModeChoice, does_not_probe_where_no_gain_is_possible) {
  ModeChoice choice;
  const auto feed_in_turn = [&](Nanoseconds drafting, int n) {
    for (int i = 0; i < n; i++) {
      EXPECT_FALSE(overlaps(choice));
      choice.measured({.whole = 1000, .drafting = drafting});
    }
  };
  feed_in_turn(28, 1000);
  EXPECT_EQ(choice.n_probes(), 0);
  EXPECT_TRUE(choice.cannot_gain());
  EXPECT_TRUE(choice.is_decided());
  EXPECT_EQ(choice.ms(ModeChoice::Overlapped), 0);
  // The draft becomes slower while rounds take as long as before.
  int n = 0;
  for (; !overlaps(choice) && n < 100; n++) choice.measured({.whole = 1000, .drafting = 300});
  EXPECT_LE(n, 10);
  for (int i = 0; i < 20; i++)
    choice.measured({.whole = overlaps(choice) ? 700 : 1000, .drafting = 300});
  EXPECT_TRUE(keeps_overlapped(choice));
}

// Steps become faster in both modes, as they do after a prompt: a change between equal modes costs
// nothing, but it must stay rare.
TEST(ModeChoice, faster_steps_rarely_change_the_mode) {
  ModeChoice choice;
  for (int text = 0; text < 20; text++)
    for (int i = 0; i < 25; i++) choice.measured(round(1000 + 250 / (1 + i / 2)));
  EXPECT_LE(choice.n_changes(), 10);
}

TEST(ModeChoice, noise_between_equal_modes_costs_nothing) {
  Dice dice(4);
  ModeChoice choice;
  for (int i = 0; i < 3000; i++) choice.measured(round(dice(950, 1050)));
  EXPECT_NEAR(choice.ms(choice.kept()), 1, 0.03);
}

// A mode with larger trees may take longer and still yield more tokens per time.
TEST(ModeChoice, counts_expected_tokens) {
  ModeChoice choice;
  for (int i = 0; i < 50; i++) {
    RoundTime time = round(overlaps(choice) ? 120 : 100);
    time.tokens = overlaps(choice) ? 3 : 2;
    choice.measured(time);
  }
  EXPECT_TRUE(keeps_overlapped(choice));
  EXPECT_NEAR(choice.ms(ModeChoice::Overlapped), 0.12, 0.001);
}

TEST(ChosenOverlap, each_branch_count_is_chosen_separately) {
  ChosenOverlap overlap;
  for (int i = 0; i < 50; i++) {
    overlap.measured(1, round(10));
    overlap.measured(2, round(overlap.at_once(2) ? 90 : 50));
    overlap.measured(3, round(overlap.at_once(3) ? 50 : 90));
  }
  EXPECT_FALSE(overlap.at_once(1));
  EXPECT_EQ(overlap.choices().at(2).kept(), ModeChoice::InTurn);
  EXPECT_EQ(overlap.choices().at(3).kept(), ModeChoice::Overlapped);
  EXPECT_EQ(overlap.choices().size(), 2u);
}

TEST(ChosenOverlap, a_new_branch_count_starts_with_the_nearest_choice) {
  for (const Nanoseconds beside : {60, 150}) {
    ChosenOverlap overlap;
    EXPECT_FALSE(overlap.at_once(6)) << "nothing is known yet";
    for (int i = 0; i < 20; i++) overlap.measured(6, round(overlap.at_once(6) ? beside : 100));
    const bool pays = beside < 100;
    ASSERT_EQ(overlap.at_once(6), pays);
    // Sequences end one by one; each count occurs only a few times.
    for (int n = 5; n > 1; n--) {
      for (int i = 0; i < 20; i++) {
        EXPECT_EQ(overlap.at_once(n), pays) << n << " branches, round " << i;
        overlap.measured(n, round(overlap.at_once(n) ? beside * 2 : 200));
      }
      EXPECT_EQ(overlap.choices().at(n).n_probes(), 0);
    }
    EXPECT_FALSE(overlap.at_once(1));
    // If the choice is wrong for this count, a probe finds out.
    for (int i = 0; i < 600; i++)
      overlap.measured(2, round(overlap.at_once(2) == pays ? 200 : 100));
    EXPECT_EQ(overlap.choices().at(2).kept() == ModeChoice::Overlapped, !pays);
  }
}

TEST(ChosenOverlap, reports_the_largest_decided_count) {
  ChosenOverlap overlap;
  EXPECT_EQ(overlap.largest_decided(), nullptr);
  for (int i = 0; i < 3; i++) overlap.measured(3, round(overlap.at_once(3) ? 60 : 100));
  EXPECT_EQ(overlap.largest_decided(), nullptr) << "measured in turn only";
  for (int i = 0; i < 17; i++) overlap.measured(3, round(overlap.at_once(3) ? 60 : 100));
  EXPECT_EQ(overlap.largest_decided(), &overlap.choices().at(3));
  overlap.measured(6, round(60));
  EXPECT_EQ(overlap.largest_decided(), &overlap.choices().at(6));
}

TEST(Overlap, names_match_their_modes) {
  EXPECT_TRUE(overlap_named("always")->at_once(1));
  EXPECT_FALSE(overlap_named("never")->at_once(3));
  EXPECT_NE(dynamic_cast<ChosenOverlap*>(overlap_named("auto").get()), nullptr);
  EXPECT_EQ(overlap_names().size(), 3u);
  EXPECT_THROW(overlap_named("often"), ContractError);
}

std::vector<ScriptedRequest> scripted(int n, int n_tokens) {
  return std::vector<ScriptedRequest>(static_cast<std::size_t>(n), {.n_tokens = n_tokens});
}

/// Stage times in both modes.
struct Machine {
  Nanoseconds draft, verify, draft_beside, verify_beside;
};

StageTimes times_of(const Rounds& rounds, const Machine& machine) {
  return {.draft = [&](int) { return rounds.at_once() ? machine.draft_beside : machine.draft; },
          .verify =
              [&](std::span<const int>) {
                return rounds.at_once() ? machine.verify_beside : machine.verify;
              }};
}

Nanoseconds makespan(Overlap& overlap,
                     const Machine& machine,
                     int n,
                     int together,
                     int n_tokens,
                     int n_drafters = 1) {
  const FirstComeFirstServed fcfs;
  Rounds rounds(n, fcfs, together, nullptr, {}, &overlap, n_drafters);
  ScriptedWork work(scripted(n, n_tokens));
  return simulate_rounds(rounds, work, times_of(rounds, machine)).back().end;
}

TEST(Rounds, alternating_takes_the_sum_of_both_stages) {
  FixedOverlap never(false);
  const Machine machine{.draft = 7, .verify = 20, .draft_beside = 1, .verify_beside = 1};
  EXPECT_EQ(makespan(never, machine, 3, 1, 50), 3 * 50 * (7 + 20));
  EXPECT_EQ(makespan(never, machine, 6, 6, 50), 50 * (6 * 7 + 20)) << "six drafts, one forward";
  EXPECT_EQ(makespan(never, machine, 1, 1, 50), 50 * (7 + 20));
}

// Drafting all branches in a row keeps the draft's weights in the CPU's cache.
TEST(Rounds, alternating_drafts_all_branches_then_verifies_all) {
  const FirstComeFirstServed fcfs;
  for (const int together : {1, 2, 3, 8}) {
    FixedOverlap never(false);
    Rounds rounds(4, fcfs, together, nullptr, {}, &never);
    ScriptedWork work({{.n_tokens = 3}, {.n_tokens = 9}, {.n_tokens = 6}, {.n_tokens = 9}});
    std::string order;
    for (const StageSlice& slice : simulate_rounds(rounds, work, fixed_times(5, 20)))
      order += (slice.stage == StageSlice::Stage::Draft ? "d" : "v") + std::to_string(slice.branch);
    std::string expected;
    for (int round = 0; round < 9; round++)
      for (const char* stage : {"d", "v"})
        for (const int branch : {0, 1, 2, 3}) {
          const int n_tokens = std::vector{3, 9, 6, 9}[static_cast<std::size_t>(branch)];
          if (round < n_tokens) expected += stage + std::to_string(branch);
        }
    EXPECT_EQ(order, expected) << together;
  }
}

TEST(Rounds, alternating_never_runs_both_stages_at_once) {
  Dice dice(6);
  const FirstComeFirstServed fcfs;
  FixedOverlap never(false);
  for (int trial = 0; trial < 50; trial++) {
    Rounds rounds(dice(1, 5), fcfs, dice(1, 3), nullptr, {}, &never, dice(1, 4));
    ScriptedWork work(scripted(dice(1, 8), dice(1, 20)));
    const StageTimes times{
        .draft = [&](int) { return Nanoseconds{dice(1, 50)}; },
        .verify = [&](std::span<const int>) { return Nanoseconds{dice(1, 50)}; }};
    Nanoseconds until = 0;
    const StageSlice* last = nullptr;
    const auto slices = simulate_rounds(rounds, work, times);
    for (const StageSlice& slice : slices) {
      const bool together = last && slice.stage == StageSlice::Stage::Verify &&
                            slice.stage == last->stage && slice.begin == last->begin;
      EXPECT_TRUE(together || slice.begin == until);
      until = slice.end;
      last = &slice;
    }
    EXPECT_EQ(std::ssize(slices), 2 * work.n_rounds());
    EXPECT_EQ(rounds.totals().n_overlapped, 0);
  }
}

// Apart from probes, adaptive rounds must not be slower than alternating ones, and must be faster
// where overlap pays.
TEST(Rounds, adaptive_rounds_are_about_as_fast_as_the_better_mode) {
  const Machine machines[] = {
      {.draft = 200, .verify = 300, .draft_beside = 220, .verify_beside = 320},  // overlap pays
      {.draft = 20,
       .verify = 300,
       .draft_beside = 30,
       .verify_beside = 520},  // overlap costs a core
      {.draft = 90, .verify = 300, .draft_beside = 400, .verify_beside = 450},  // a slow draft
      {.draft = 1, .verify = 300, .draft_beside = 1, .verify_beside = 300}};    // no difference
  for (const Machine& machine : machines) {
    for (const int together : {1, 3}) {
      FixedOverlap never(false), always(true);
      ChosenOverlap measured;
      const auto n_tokens = 400;
      const Nanoseconds in_turn = makespan(never, machine, 3, together, n_tokens);
      const Nanoseconds at_once = makespan(always, machine, 3, together, n_tokens);
      const Nanoseconds looked = makespan(measured, machine, 3, together, n_tokens);
      EXPECT_LE(static_cast<double>(looked), 1.04 * static_cast<double>(std::min(in_turn, at_once)))
          << machine.draft << " " << together << ": " << in_turn << " " << at_once;
    }
  }
}

TEST(Rounds, adaptive_rounds_without_gain_equal_alternating_ones) {
  const Machine machine{.draft = 2, .verify = 300, .draft_beside = 2, .verify_beside = 600};
  for (const int together : {1, 3}) {
    FixedOverlap never(false);
    ChosenOverlap measured;
    const Nanoseconds in_turn = makespan(never, machine, 3, together, 400);
    EXPECT_EQ(makespan(measured, machine, 3, together, 400), in_turn);
    EXPECT_EQ(measured.choices().at(3).n_probes(), 0);
    EXPECT_EQ(measured.largest_decided(), &measured.choices().at(3));
  }
}

// Drafting takes 99 % of a round in turn: one drafter can gain 1 %, four can gain a factor of 4.
TEST(Rounds, several_drafters_can_make_overlap_pay) {
  const Machine machine{.draft = 990, .verify = 10, .draft_beside = 990, .verify_beside = 10};
  ChosenOverlap one(1), four(4);
  const Nanoseconds in_turn = 4 * 200 * 1000;
  EXPECT_EQ(makespan(one, machine, 4, 1, 200, 1), in_turn);
  EXPECT_EQ(one.choices().at(4).n_probes(), 0);
  EXPECT_LT(makespan(four, machine, 4, 1, 200, 4), in_turn / 3);
  EXPECT_EQ(four.choices().at(4).kept(), ModeChoice::Overlapped);
}

TEST(Rounds, adaptive_rounds_are_deterministic) {
  const Machine machine{.draft = 20, .verify = 30, .draft_beside = 22, .verify_beside = 32};
  ChosenOverlap first, second;
  EXPECT_EQ(makespan(first, machine, 4, 2, 300), makespan(second, machine, 4, 2, 300));
}

/// Alternates between both modes.
class AlternatingOverlap final : public Overlap {
 public:
  explicit AlternatingOverlap(std::uint64_t seed) : dice_(seed) {}
  bool at_once(int /*n_branches*/) const override { return at_once_; }
  void measured(int /*n_branches*/, const RoundTime& per_text) override {
    EXPECT_GE(per_text.drafting, 0);
    EXPECT_GE(per_text.whole, 0);
    at_once_ = dice_(0, 1) == 1;
  }

 private:
  Dice dice_;
  bool at_once_ = false;
};

TEST(Rounds, every_request_ends_in_any_overlap_mode) {
  Dice dice(12);
  for (int trial = 0; trial < 200; trial++) {
    const auto policy = policy_named(policy_names()[static_cast<std::size_t>(trial % 3)]);
    AlternatingOverlap overlap(static_cast<std::uint64_t>(trial));
    Rounds rounds(dice(1, 5), *policy, dice(1, 4), nullptr, {}, &overlap, dice(1, 4));
    const int n = dice(0, 9);
    ScriptedWork work(scripted(n, dice(1, 30)));
    const StageTimes times{
        .draft = [&](int) { return Nanoseconds{dice(1, 50)}; },
        .verify = [&](std::span<const int>) { return Nanoseconds{dice(1, 50)}; }};
    simulate_rounds(rounds, work, times);
    EXPECT_EQ(std::ssize(work.ended()), n);
  }
}

}  // namespace
}  // namespace engine::test

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
  return {.whole = whole, .drafting = whole / 2};
}

/// Time per sequence of a round in each mode.
struct Costs {
  Nanoseconds in_turn = 0, at_once = 0;
};

/// @return  the number of overlapped rounds
int feed(OverlapTuner& tuner, const Costs& costs, int n) {
  int n_at_once = 0;
  for (int i = 0; i < n; i++) {
    n_at_once += tuner.at_once();
    tuner.measured(round(tuner.at_once() ? costs.at_once : costs.in_turn));
  }
  return n_at_once;
}

TEST(OverlapTuner, starts_alternating_and_overlaps_where_faster) {
  OverlapTuner tuner;
  EXPECT_FALSE(tuner.at_once());
  EXPECT_GT(feed(tuner, {.in_turn = 100, .at_once = 60}, 200), 180);
  EXPECT_TRUE(tuner.keeps_overlapped());
  EXPECT_EQ(tuner.in_turn(), 100);
  EXPECT_EQ(tuner.overlapped(), 60);
  EXPECT_EQ(tuner.n_changes(), 1);
}

TEST(OverlapTuner, probes_rarely_where_overlap_does_not_pay) {
  for (const Nanoseconds at_once : {120, 170, 500}) {
    OverlapTuner tuner;
    const int n_lost = feed(tuner, {.in_turn = 100, .at_once = at_once}, 1000);
    EXPECT_FALSE(tuner.keeps_overlapped());
    EXPECT_GE(tuner.n_probes(), 3) << "it still probes rarely";
    EXPECT_LE(n_lost, 6);
    EXPECT_EQ(tuner.overlapped(), at_once);
  }
  OverlapTuner a_little_slower;
  feed(a_little_slower, {.in_turn = 100, .at_once = 105}, 1000);
  EXPECT_GE(a_little_slower.n_probes(), 4) << "a small loss is probed again";
}

// The load changes repeatedly. A changed load alone is a weak reason to probe a mode that was far
// slower.
TEST(OverlapTuner, a_changing_load_causes_few_probes_after_a_clear_loss) {
  const auto n_probes = [](Nanoseconds at_once) {
    OverlapTuner tuner;
    for (int phase = 1; phase <= 40; phase++) {
      const Nanoseconds slower = phase % 2 ? 3 : 2;
      feed(tuner, {.in_turn = 50 * slower, .at_once = at_once * slower}, 12);
    }
    EXPECT_FALSE(tuner.keeps_overlapped());
    return tuner.n_probes();
  };
  EXPECT_LE(n_probes(70), 10);
  EXPECT_GE(n_probes(51), 20);
}

TEST(OverlapTuner, a_lost_probe_after_a_load_change_delays_the_next) {
  OverlapTuner tuner;
  feed(tuner, {.in_turn = 100, .at_once = 140}, 100);
  feed(tuner, {.in_turn = 200, .at_once = 280}, 12);
  ASSERT_EQ(tuner.n_probes(), 2) << "the load changed";
  EXPECT_EQ(feed(tuner, {.in_turn = 200, .at_once = 280}, 180), 0);
}

TEST(OverlapTuner, another_branch_count_starts_from_the_last_loss) {
  OverlapTuner three;
  feed(three, {.in_turn = 100, .at_once = 140}, 20);
  OverlapTuner two(&three);
  EXPECT_EQ(feed(two, {.in_turn = 100, .at_once = 140}, 150), 0);
  EXPECT_GT(feed(two, {.in_turn = 100, .at_once = 140}, 60), 0);
}

TEST(OverlapTuner, an_insignificant_gain_changes_nothing) {
  OverlapTuner in_turn;
  feed(in_turn, {.in_turn = 100, .at_once = 99}, 500);
  EXPECT_FALSE(in_turn.keeps_overlapped());
  OverlapTuner at_once;
  feed(at_once, {.in_turn = 100, .at_once = 90}, 20);
  ASSERT_TRUE(at_once.keeps_overlapped());
  feed(at_once, {.in_turn = 89, .at_once = 90}, 1000);
  EXPECT_TRUE(at_once.keeps_overlapped());
  EXPECT_EQ(at_once.n_changes(), 1);
}

TEST(OverlapTuner, detects_load_changes_in_both_directions) {
  OverlapTuner tuner;
  feed(tuner, {.in_turn = 100, .at_once = 60}, 500);
  ASSERT_TRUE(tuner.keeps_overlapped());
  feed(tuner, {.in_turn = 110, .at_once = 180}, 12);
  EXPECT_FALSE(tuner.keeps_overlapped()) << "the kept mode became slower, so it probes at once";
  feed(tuner, {.in_turn = 110, .at_once = 50}, 1000);
  EXPECT_TRUE(tuner.keeps_overlapped()) << "no signal, but a rare probe finds it";
  EXPECT_EQ(tuner.n_changes(), 3);
}

TEST(OverlapTuner, rare_slow_rounds_do_not_mislead_it) {
  OverlapTuner tuner;
  for (int i = 0; i < 2000; i++) {
    const Nanoseconds usual = tuner.at_once() ? 80 : 100;
    tuner.measured(round(i % 7 == 5 ? 5 * usual : usual));
  }
  EXPECT_TRUE(tuner.keeps_overlapped());
  EXPECT_EQ(tuner.n_changes(), 1);
}

// Drafting takes so small a part of a round that hiding it would not gain the required margin.
TEST(OverlapTuner, does_not_probe_where_no_gain_is_possible) {
  OverlapTuner tuner;
  const auto feed_in_turn = [&](Nanoseconds drafting, int n) {
    for (int i = 0; i < n; i++) {
      EXPECT_FALSE(tuner.at_once());
      tuner.measured({.whole = 1000, .drafting = drafting});
    }
  };
  feed_in_turn(28, 1000);
  EXPECT_EQ(tuner.n_probes(), 0);
  EXPECT_TRUE(tuner.has_measurements());
  EXPECT_TRUE(tuner.was_probe_skipped());
  EXPECT_EQ(tuner.in_turn(), 1000);
  EXPECT_EQ(tuner.overlapped(), 0);
  // The draft becomes slower while rounds take as long as before. The tuner must notice within one
  // backoff period.
  int n = 0;
  for (; !tuner.at_once() && n < 1000; n++) tuner.measured({.whole = 1000, .drafting = 300});
  EXPECT_TRUE(tuner.at_once());
  EXPECT_LE(n, 800);
  feed(tuner, {.in_turn = 1000, .at_once = 700}, 20);
  EXPECT_TRUE(tuner.keeps_overlapped());
  EXPECT_FALSE(tuner.was_probe_skipped());

  OverlapTuner just_enough;
  for (int i = 0; i < 3; i++) just_enough.measured({.whole = 1000, .drafting = 30});
  EXPECT_TRUE(just_enough.at_once());
}

// Steps become faster in both modes, as they do after a prompt.
TEST(OverlapTuner, faster_steps_favour_neither_mode) {
  OverlapTuner tuner;
  for (int text = 0; text < 20; text++)
    for (int i = 0; i < 25; i++) tuner.measured(round(1000 + 250 / (1 + i / 2)));
  EXPECT_FALSE(tuner.keeps_overlapped());
  EXPECT_EQ(tuner.n_changes(), 0);
  EXPECT_GE(tuner.n_probes(), 2);
}

TEST(OverlapTuner, noise_between_equal_modes_rarely_changes_it) {
  Dice dice(4);
  OverlapTuner tuner;
  for (int i = 0; i < 3000; i++) tuner.measured(round(dice(950, 1050)));
  EXPECT_LE(tuner.n_changes(), tuner.n_probes() / 2);
  EXPECT_LE(tuner.n_probes(), 60);
}

TEST(MeasuredOverlap, each_branch_count_is_tuned_separately) {
  MeasuredOverlap overlap;
  for (int i = 0; i < 50; i++) {
    overlap.measured(1, round(10));
    overlap.measured(2, round(overlap.at_once(2) ? 90 : 50));
    overlap.measured(3, round(overlap.at_once(3) ? 50 : 90));
  }
  EXPECT_FALSE(overlap.at_once(1));
  EXPECT_FALSE(overlap.at_once(2));
  EXPECT_TRUE(overlap.at_once(3));
  EXPECT_EQ(overlap.tuners().size(), 2u);
}

TEST(MeasuredOverlap, a_new_branch_count_starts_with_the_nearest_choice) {
  for (const Nanoseconds beside : {50, 150}) {
    MeasuredOverlap overlap;
    EXPECT_FALSE(overlap.at_once(6)) << "nothing is known yet";
    for (int i = 0; i < 20; i++) overlap.measured(6, round(overlap.at_once(6) ? beside : 100));
    const bool pays = beside < 100;
    ASSERT_EQ(overlap.at_once(6), pays);
    // Sequences end one by one; each count occurs only a few times.
    for (int n = 5; n > 1; n--) {
      for (int i = 0; i < 40; i++) {
        EXPECT_EQ(overlap.at_once(n), pays) << n << " branches, round " << i;
        overlap.measured(n, round(overlap.at_once(n) ? beside * 2 : 200));
      }
      EXPECT_EQ(overlap.tuners().at(n).n_probes(), 0);
    }
    EXPECT_FALSE(overlap.at_once(1));
    // If the choice is wrong for this count, a probe finds out.
    for (int i = 0; i < 200; i++) overlap.measured(2, round(overlap.at_once(2) == pays ? 200 : 90));
    EXPECT_EQ(overlap.at_once(2), !pays);
  }
}

// A count that started from a neighbour's choice may have been measured in one mode only. Such a
// count is not reported.
TEST(MeasuredOverlap, reports_the_largest_count_measured_in_both_modes) {
  for (const Nanoseconds beside : {50, 150}) {
    MeasuredOverlap overlap;
    EXPECT_EQ(overlap.largest_measured(), nullptr);
    const auto rounds = [&](int n_branches, int n) {
      for (int i = 0; i < n; i++)
        overlap.measured(n_branches, round(overlap.at_once(n_branches) ? beside : 100));
    };
    rounds(3, 3);
    EXPECT_EQ(overlap.largest_measured(), nullptr) << "measured only in alternating mode";
    rounds(3, 17);
    ASSERT_EQ(overlap.at_once(3), beside < 100);
    rounds(6, 10);
    const OverlapTuner& six = overlap.tuners().at(6);
    EXPECT_EQ(six.in_turn() > 0, beside > 100) << "the mode that it started with";
    EXPECT_EQ(six.overlapped() > 0, beside < 100);
    const OverlapTuner* largest = overlap.largest_measured();
    ASSERT_EQ(largest, &overlap.tuners().at(3));
    EXPECT_EQ(largest->in_turn(), 100);
    EXPECT_EQ(largest->overlapped(), beside);
    rounds(6, 200);
    EXPECT_EQ(overlap.largest_measured(), &six) << "it has probed";
  }
}

TEST(Overlap, names_match_their_modes) {
  EXPECT_TRUE(overlap_named("always")->at_once(1));
  EXPECT_FALSE(overlap_named("never")->at_once(3));
  EXPECT_NE(dynamic_cast<MeasuredOverlap*>(overlap_named("auto").get()), nullptr);
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
              },
          .n_drafts = 1};
}

Nanoseconds makespan(Overlap& overlap, const Machine& machine, int n, int together, int n_tokens) {
  const FirstComeFirstServed fcfs;
  Rounds rounds(n, fcfs, together, nullptr, {}, &overlap);
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
    for (const StageSlice& slice : simulate_rounds(rounds, work, fixed_times(5, 20, 1)))
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
    Rounds rounds(dice(1, 5), fcfs, dice(1, 3), nullptr, {}, &never);
    ScriptedWork work(scripted(dice(1, 8), dice(1, 20)));
    const StageTimes times{.draft = [&](int) { return Nanoseconds{dice(1, 50)}; },
                           .verify = [&](std::span<const int>) { return Nanoseconds{dice(1, 50)}; },
                           .n_drafts = dice(0, 3)};
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
      MeasuredOverlap measured;
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
    MeasuredOverlap measured;
    const Nanoseconds in_turn = makespan(never, machine, 3, together, 400);
    EXPECT_EQ(makespan(measured, machine, 3, together, 400), in_turn);
    EXPECT_EQ(measured.tuners().at(3).n_probes(), 0);
    EXPECT_EQ(measured.largest_measured(), &measured.tuners().at(3));
  }
}

TEST(Rounds, adaptive_rounds_are_deterministic) {
  const Machine machine{.draft = 20, .verify = 30, .draft_beside = 22, .verify_beside = 32};
  MeasuredOverlap first, second;
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
    Rounds rounds(dice(1, 5), *policy, dice(1, 4), nullptr, {}, &overlap);
    const int n = dice(0, 9);
    ScriptedWork work(scripted(n, dice(1, 30)));
    const StageTimes times{.draft = [&](int) { return Nanoseconds{dice(1, 50)}; },
                           .verify = [&](std::span<const int>) { return Nanoseconds{dice(1, 50)}; },
                           .n_drafts = dice(0, 2)};
    simulate_rounds(rounds, work, times);
    EXPECT_EQ(std::ssize(work.ended()), n);
  }
}

}  // namespace
}  // namespace engine::test

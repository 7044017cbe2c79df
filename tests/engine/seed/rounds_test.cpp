// Bookkeeping of SEED's rounds in the simulator: every branch ends, in the order of the policy, and
// with the expected times (T10).
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/seed/rounds.h"
#include "engine/seed/rounds_simulator.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

const FirstComeFirstServed kFcfs;

std::vector<ScriptedRequest> requests_of(int n, int n_tokens, std::vector<int> emitted) {
  return std::vector<ScriptedRequest>(static_cast<std::size_t>(n),
                                      {.n_tokens = n_tokens, .emitted = std::move(emitted)});
}

StageTimes random_times(Dice& dice) {
  return {.draft = [&dice](int) { return Nanoseconds{dice(1, 50)}; },
          .verify = [&dice](std::span<const int>) { return Nanoseconds{dice(1, 50)}; }};
}

/// Rounds in which `n_drafters` branches may draft at the same time.
Rounds rounds_of(int n, const Policy& policy, int n_drafters, EventSink* events = nullptr) {
  return Rounds(n, policy, 1, events, {}, nullptr, n_drafters);
}

/// Branches of the events of type E, which name the queue of Algorithm 1.
template <class E>
const E* at_target(const Event& event) {
  const E* e = std::get_if<E>(&event);
  return e && e->resource == "target" ? e : nullptr;
}

TEST(Policy, each_policy_picks_its_branch) {
  const std::vector<Waiter> waiting{{.branch = 4, .n_verified = 7, .value = 1},
                                    {.branch = 2, .n_verified = 3, .value = 5},
                                    {.branch = 0, .n_verified = 3, .value = 5},
                                    {.branch = 1, .n_verified = 9, .value = 2}};
  EXPECT_EQ(policy_named("fcfs")->next(waiting), 0u);
  EXPECT_EQ(policy_named("shortest")->next(waiting), 1u) << "ties go to the earlier arrival";
  EXPECT_EQ(policy_named("priority")->next(waiting), 1u);
  EXPECT_EQ(policy_named("priority")->next(std::span(waiting).last(2)), 0u);
  EXPECT_EQ(policy_names().size(), 3u);
  EXPECT_THROW(policy_named("sjf"), ContractError);
}

TEST(Rounds, fcfs_verifies_in_order_of_arrival) {
  Dice dice(1);
  for (int trial = 0; trial < 50; trial++) {
    EventList events;
    const int n = dice(1, 6);
    Rounds rounds(n, kFcfs, dice(1, 3), &events, {}, nullptr, dice(1, 4));
    ScriptedWork work(requests_of(dice(1, 9), dice(1, 30), {1, 3, 2}));
    simulate_rounds(rounds, work, random_times(dice));
    std::vector<std::pair<RunId, int>> arrived, left;
    int n_waiting = 0;
    for (const Event& event : events.events) {
      if (const Queued* e = at_target<Queued>(event)) {
        arrived.emplace_back(e->run, e->branch);
        EXPECT_LE(++n_waiting, n) << "a branch has one tree in flight";
      }
      if (const Dequeued* e = at_target<Dequeued>(event)) {
        left.emplace_back(e->run, e->branch);
        n_waiting--;
      }
    }
    EXPECT_EQ(arrived, left);
    EXPECT_LE(rounds.totals().longest_queue, n);
  }
}

/// Asserts the rules of rounds at every call.
class WatchedWork final : public RoundsWork {
 public:
  WatchedWork(RoundsWork& work, Rounds& rounds) : work_(work), rounds_(rounds) {}
  std::optional<Admitted> begin(int branch) override {
    EXPECT_TRUE(rounds_.is_free(branch));
    return work_.begin(branch);
  }
  void draft(int branch) override {
    EXPECT_FALSE(rounds_.may_draft(branch));
    EXPECT_TRUE(drafted_.insert(branch).second) << "drafted twice without a verification";
    work_.draft(branch);
  }
  std::vector<VerifiedBranch> verify(std::span<const int> branches) override {
    for (const int branch : branches) {
      EXPECT_FALSE(rounds_.may_draft(branch));
      EXPECT_EQ(drafted_.erase(branch), 1u) << "verified twice without a draft";
      for (const Waiter& waiter : rounds_.queue()) EXPECT_NE(waiter.branch, branch);
    }
    return work_.verify(branches);
  }
  void end(int branch) override {
    EXPECT_TRUE(rounds_.is_free(branch));
    work_.end(branch);
  }

 private:
  RoundsWork& work_;
  Rounds& rounds_;
  std::set<int> drafted_;
};

TEST(Rounds, every_request_ends_under_any_policy_and_times) {
  Dice dice(2);
  for (int trial = 0; trial < 200; trial++) {
    const auto policy = policy_named(policy_names()[static_cast<std::size_t>(trial % 3)]);
    const int n = dice(1, 5), n_requests = dice(0, 8);
    Rounds rounds(n, *policy, dice(1, 3), nullptr, {}, nullptr, dice(1, 5));
    std::vector<ScriptedRequest> requests;
    for (int i = 0; i < n_requests; i++) {
      requests.push_back({.n_tokens = dice(1, 12),  // some end with their first round
                          .emitted = {dice(1, 4), dice(1, 4)},
                          .value = static_cast<double>(dice(0, 3))});
    }
    ScriptedWork script(requests);
    WatchedWork work(script, rounds);
    const auto slices = simulate_rounds(rounds, work, random_times(dice));
    EXPECT_EQ(std::ssize(script.ended()), n_requests);
    EXPECT_EQ(rounds.totals().n_drafts, script.n_rounds());
    EXPECT_EQ(std::ssize(slices), 2 * script.n_rounds());
    for (int branch = 0; branch < n; branch++) EXPECT_TRUE(rounds.is_free(branch));
  }
}

TEST(Rounds, each_branch_and_the_target_do_one_thing_at_a_time) {
  Dice dice(3);
  Rounds rounds(4, kFcfs, 2, nullptr, {}, nullptr, 4);
  ScriptedWork work(requests_of(9, 20, {2}));
  std::map<int, Nanoseconds> branch_busy_until;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> verifications;
  for (const StageSlice& slice : simulate_rounds(rounds, work, random_times(dice))) {
    EXPECT_GE(slice.begin, branch_busy_until[slice.branch]);
    branch_busy_until[slice.branch] = slice.end;
    if (slice.stage == StageSlice::Stage::Verify)
      verifications.emplace_back(slice.begin, slice.end);
  }
  for (std::size_t i = 1; i < verifications.size(); i++) {
    const bool together = verifications[i] == verifications[i - 1];
    EXPECT_TRUE(together || verifications[i].first >= verifications[i - 1].second);
  }
}

TEST(Rounds, valuable_states_and_short_sequences_go_first) {
  // Verifications are long: all other branches wait whenever one ends, so the target has a choice.
  const auto order = [](const Policy& policy) {
    Rounds rounds = rounds_of(3, policy, 3);
    ScriptedWork work({{.n_tokens = 9, .emitted = {3}, .value = 1},
                       {.n_tokens = 9, .emitted = {3}, .value = 3},
                       {.n_tokens = 9, .emitted = {3}, .value = 2}});
    simulate_rounds(rounds, work, fixed_times(1, 100));
    return work.ended();
  };
  EXPECT_EQ(order(FirstComeFirstServed()), (std::vector{0, 1, 2}));
  // The target takes the first branch before the others arrive, and they are ready while it drafts
  // again.
  EXPECT_EQ(order(HighestValueFirst()), (std::vector{1, 2, 0}));
  const auto lengths = [](const Policy& policy) {
    Rounds rounds = rounds_of(3, policy, 3);
    ScriptedWork work({{.n_tokens = 8, .emitted = {4}},
                       {.n_tokens = 8, .emitted = {4}},
                       {.n_tokens = 8, .emitted = {1}}});
    std::vector<int> judged;
    for (const StageSlice& slice : simulate_rounds(rounds, work, fixed_times(1, 100)))
      if (slice.stage == StageSlice::Stage::Verify) judged.push_back(slice.branch);
    return judged;
  };
  // Of two waiting branches with 4 tokens and 1 token, the second goes first although it came
  // later.
  EXPECT_EQ(lengths(ShortestFirst()), (std::vector{0, 1, 2, 0, 2, 1, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(lengths(FirstComeFirstServed()), (std::vector{0, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(Rounds, one_verification_may_take_several_waiting_branches) {
  Rounds rounds(4, kFcfs, 3, nullptr, {}, nullptr, 4);
  ScriptedWork work(requests_of(4, 30, {1}));
  simulate_rounds(rounds, work, fixed_times(10, 40));
  const RoundsTotals& totals = rounds.totals();
  EXPECT_EQ(totals.n_drafts, 120);
  EXPECT_LE(totals.n_verifications, 120 / 3 + 3) << "except for the first and the last";
  EXPECT_GE(totals.n_verifications, 120 / 3);
}

TEST(Rounds, the_target_waits_for_more_drafts_only_if_they_are_fast) {
  const auto makespan = [](int n_together, Nanoseconds t_draft, Nanoseconds t_verify) {
    Rounds rounds(4, kFcfs, n_together, nullptr);
    ScriptedWork work(requests_of(4, 50, {1}));
    return simulate_rounds(rounds, work, fixed_times(t_draft, t_verify)).back().end;
  };
  // Short drafts: four share one forward.
  EXPECT_LE(makespan(4, 1, 100), 50 * (100 + 4) + 200);
  EXPECT_GE(makespan(1, 1, 100), 4 * 50 * 100);
  // Long drafts: the target takes any waiting branch, and the draft never waits.
  EXPECT_LE(makespan(4, 100, 10), 4 * 50 * 100 + 20);
}

TEST(Rounds, earlier_stage_times_are_used_at_the_first_verification) {
  const auto first_of = [](const RoundsTotals& known) {
    Rounds rounds(4, kFcfs, 4, nullptr, known);
    ScriptedWork work(requests_of(4, 10, {1}));
    const auto slices = simulate_rounds(rounds, work, fixed_times(1, 100));
    std::size_t n = 0;  // branches in the first verification
    const auto verifies = [](const StageSlice& s) { return s.stage == StageSlice::Stage::Verify; };
    const auto first = std::ranges::find_if(slices, verifies);
    for (const StageSlice& slice : slices) n += verifies(slice) && slice.begin == first->begin;
    EXPECT_EQ(rounds.totals().n_drafts, 40) << "only its own draft";
    return n;
  };
  EXPECT_EQ(first_of({}), 1u) << "without known times any waiting branch is taken";
  RoundsTotals known;
  known.n_drafts = known.n_verifications = 10;
  known.drafting = 10;
  known.verifying = 1000;
  EXPECT_EQ(first_of(known), 4u);
  known.drafting = 10000;  // drafts are slower than a verification
  EXPECT_EQ(first_of(known), 1u);
}

// Fixed stage times T_d (draft) and T_v (verification) give a speedup of min(n, (T_d + T_v) / T_v),
// except for the start.
TEST(Rounds, fixed_stage_times_reach_the_bound) {
  constexpr int kRounds = 400;
  for (const auto& [t_draft, t_verify] :
       std::vector<std::pair<Nanoseconds, Nanoseconds>>{{30, 10}, {10, 10}, {5, 20}, {100, 7}}) {
    for (int n = 1; n <= 6; n++) {
      for (const int n_drafters : {1, 2, 6}) {
        Rounds rounds = rounds_of(n, kFcfs, n_drafters);
        ScriptedWork work(requests_of(n, kRounds, {1}));
        const auto slices = simulate_rounds(rounds, work, fixed_times(t_draft, t_verify));
        const double in_turn = static_cast<double>(n * kRounds * (t_draft + t_verify));
        const double gain = in_turn / static_cast<double>(slices.back().end);
        const double bound = speedup_bound(n, n_drafters, static_cast<double>(t_draft),
                                           static_cast<double>(t_verify));
        EXPECT_LE(gain, bound * (1 + 1e-9)) << n << " " << n_drafters;
        EXPECT_GE(gain, bound * 0.97) << n << " " << n_drafters;
        if (n_drafters >= n) {
          const double paper = std::min<double>(
              n, static_cast<double>(t_draft + t_verify) / static_cast<double>(t_verify));
          EXPECT_DOUBLE_EQ(bound, paper);
        }
      }
    }
  }
}

// Several sequences per verification, compared with drafting and verifying them in turn.
TEST(Rounds, batched_verification_stays_within_the_bound) {
  constexpr int kRounds = 300;
  for (const auto& [t_draft, t_verify] :
       std::vector<std::pair<Nanoseconds, Nanoseconds>>{{5, 20}, {10, 10}, {30, 10}, {1, 60}}) {
    for (const int n : {3, 6}) {
      Rounds rounds(n, kFcfs, 3, nullptr);
      ScriptedWork work(requests_of(n, kRounds, {1}));
      const auto slices = simulate_rounds(rounds, work, fixed_times(t_draft, t_verify));
      const auto draft = static_cast<double>(t_draft), verify = static_cast<double>(t_verify);
      const double together =
          static_cast<double>(n * kRounds) / static_cast<double>(rounds.totals().n_verifications);
      const double in_turn = n * kRounds * (draft + verify / together);
      const double gain = in_turn / static_cast<double>(slices.back().end);
      EXPECT_LE(gain, speedup_bound(n, 1, draft, verify, together) * (1 + 1e-9)) << n;
      if (n == 6 && t_draft == 5) {
        EXPECT_GT(gain, speedup_bound(n, 1, draft, verify))
            << "the bound with one sequence per verification";
      }
    }
  }
}

TEST(Rounds, waits_and_work_add_up_to_each_branchs_time) {
  Dice dice(5);
  for (int trial = 0; trial < 20; trial++) {
    EventList events;
    const int n = dice(1, 5);
    Rounds rounds = rounds_of(n, kFcfs, 1 + trial % 4, &events);
    ScriptedWork work(requests_of(n, dice(5, 40), {1, 2}));
    const auto slices = simulate_rounds(rounds, work, random_times(dice));
    std::map<int, Nanoseconds> left;  // all start at 0
    for (const StageSlice& slice : slices) left[slice.branch] = slice.end;
    Nanoseconds there = 0;
    for (const auto& [branch, t] : left) there += t;
    const RoundsTotals& totals = rounds.totals();
    EXPECT_EQ(totals.wait_for_draft + totals.drafting + totals.wait_for_target + totals.verifying,
              there);
    // The target is busy or idle from the start to the end.
    EXPECT_EQ(totals.verifying + totals.target_idle, slices.back().end);
    Nanoseconds idle = 0, draft_idle = 0;
    for (const Event& event : events.events) {
      if (const Waiting* e = std::get_if<Waiting>(&event))
        (e->resource == "target" ? idle : draft_idle) += e->t - e->since;
    }
    EXPECT_EQ(idle, totals.target_idle);
    EXPECT_EQ(draft_idle, totals.draft_idle);
    EXPECT_LE(totals.most_drafting, 1 + trial % 4);
    // The draft is idle while no branch drafts, until the last draft begins.
    Nanoseconds until = 0, gaps = 0;
    std::vector<std::pair<Nanoseconds, Nanoseconds>> drafts;
    for (const StageSlice& slice : slices)
      if (slice.stage == StageSlice::Stage::Draft) drafts.emplace_back(slice.begin, slice.end);
    std::ranges::sort(drafts);
    for (const auto& [begin, end] : drafts) {
      gaps += std::max<Nanoseconds>(0, begin - until);
      until = std::max(until, end);
    }
    EXPECT_EQ(totals.draft_idle, gaps);
  }
}

/// The stages of a schedule, by branch: "d0 0-3" is a draft for branch 0 from 0 to 3.
std::vector<std::string> stages_of(std::span<const StageSlice> slices) {
  std::vector<std::string> stages;
  for (const StageSlice& s : slices)
    stages.push_back((s.stage == StageSlice::Stage::Draft ? "d" : "v") + std::to_string(s.branch) +
                     " " + std::to_string(s.begin) + "-" + std::to_string(s.end));
  return stages;
}

// Three branches of two rounds; a draft takes 3, a verification 2. The schedules are written by hand.
TEST(Rounds, drafters_take_the_branches_of_a_schedule_made_by_hand) {
  const auto schedule = [](int n_drafters, EventSink* events) {
    Rounds rounds = rounds_of(3, kFcfs, n_drafters, events);
    ScriptedWork work(requests_of(3, 2, {1}));
    return stages_of(simulate_rounds(rounds, work, fixed_times(3, 2)));
  };
  EXPECT_EQ(schedule(1, nullptr),
            (std::vector<std::string>{"d0 0-3", "v0 3-5", "d1 3-6", "v1 6-8", "d2 6-9", "v2 9-11",
                                      "d0 9-12", "v0 12-14", "d1 12-15", "v1 15-17", "d2 15-18",
                                      "v2 18-20"}));
  EXPECT_EQ(schedule(2, nullptr),
            (std::vector<std::string>{"d0 0-3", "d1 0-3", "v0 3-5", "d2 3-6", "v1 5-7", "d0 5-8",
                                      "v2 7-9", "d1 7-10", "v0 9-11", "d2 9-12", "v1 11-13",
                                      "v2 13-15"}));
  EXPECT_EQ(schedule(3, nullptr),
            (std::vector<std::string>{"d0 0-3", "d1 0-3", "d2 0-3", "v0 3-5", "v1 5-7", "d0 5-8",
                                      "v2 7-9", "d1 7-10", "v0 9-11", "d2 9-12", "v1 11-13",
                                      "v2 13-15"}));
  // Events of two drafters: both begin at 0, so two branches are between their Dequeued("draft") and
  // their Queued("target"). No drafter works from 12 on, and no branch waits for one.
  EventList events;
  schedule(2, &events);
  std::vector<std::string> drafting;
  for (const Event& event : events.events) {
    if (const auto* e = std::get_if<Dequeued>(&event); e && e->resource == "draft")
      drafting.push_back("begin " + std::to_string(e->branch) + " " + std::to_string(e->t));
    if (const auto* e = at_target<Queued>(event))
      drafting.push_back("end " + std::to_string(e->branch) + " " + std::to_string(e->t));
    if (const auto* e = std::get_if<Waiting>(&event); e && e->resource == "draft")
      drafting.push_back("idle " + std::to_string(e->since) + "-" + std::to_string(e->t));
  }
  EXPECT_EQ(drafting, (std::vector<std::string>{"begin 0 0", "begin 1 0", "end 0 3", "begin 2 3",
                                                "end 1 3", "begin 0 5", "end 2 6", "begin 1 7",
                                                "end 0 8", "begin 2 9", "end 1 10", "end 2 12"}));
}

// The paper's figure 7: speed-up and the share of time in which the target works, for 1 to 6
// branches. With a draft per branch both grow until the target is never idle; one drafter is busy
// all the time before.
TEST(Rounds, more_drafters_keep_the_target_busy) {
  constexpr Nanoseconds kDraft = 30, kVerify = 10;
  constexpr int kRounds = 400;
  for (int n = 1; n <= 6; n++) {
    for (int n_drafters = 1; n_drafters <= n; n_drafters++) {
      Rounds rounds = rounds_of(n, kFcfs, n_drafters);
      ScriptedWork work(requests_of(n, kRounds, {1}));
      const Nanoseconds end =
          simulate_rounds(rounds, work, fixed_times(kDraft, kVerify)).back().end;
      // A round of all branches: of one branch alone, of the target, of the busiest drafter.
      const double round = std::max({40.0, 10.0 * n, 30.0 * n / n_drafters});
      EXPECT_NEAR(static_cast<double>(end) / kRounds, round, 0.02 * round)
          << n << " " << n_drafters;
      const double busy = static_cast<double>(rounds.totals().verifying) / static_cast<double>(end);
      EXPECT_NEAR(busy, 10.0 * n / round, 0.02) << n << " " << n_drafters;
      EXPECT_EQ(rounds.totals().most_drafting, n_drafters);
    }
  }
}

TEST(Rounds, a_branch_doing_two_things_at_once_is_a_contract_error) {
  Rounds rounds(2, kFcfs, 1, nullptr);
  rounds.admit(0, 1, 0, 5);
  EXPECT_THROW(rounds.admit(0, 2, 0, 6), ContractError);
  EXPECT_THROW(rounds.drafted(0, 6), ContractError);
  EXPECT_EQ(rounds.draft_next(7), 0);
  EXPECT_FALSE(rounds.draft_next(7).has_value());
  EXPECT_THROW(rounds.drafted(0, 6), ContractError) << "time must not decrease";
  EXPECT_TRUE(rounds.verify_next(8).empty());
  rounds.drafted(0, 9);
  EXPECT_EQ(rounds.verify_next(9), std::vector{0});
  EXPECT_THROW(rounds.admit(7, 1, 0, 9), ContractError);
  EXPECT_THROW(rounds_of(2, kFcfs, 0), ContractError);
}

}  // namespace
}  // namespace engine::test

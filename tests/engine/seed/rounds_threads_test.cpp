// Rounds on several threads give each sequence its output alone under any delay and policy, and
// always end (T10).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "engine/seed/rounds_threads.h"
#include "tests/support/deadline.h"
#include "tests/support/decode/lane_rounds.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

/// Runs the rounds; fails if the threads do not end in time.
void run_in_time(Rounds& rounds, RoundsWork& work, const std::function<bool()>& stop = {}) {
  const Deadline deadline;
  run_rounds(rounds, work, stop);
}

/// Random delays that differ by call and thread. Several threads may call the function.
std::function<void()> delays(std::uint64_t seed) {
  auto dice = std::make_shared<std::pair<std::mutex, Dice>>(std::piecewise_construct,
                                                            std::tuple<>(), std::tuple(seed));
  return [dice] {
    int us = 0;
    {
      const std::lock_guard lock(dice->first);
      us = dice->second(0, 200);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  };
}

/// A draft model for each branch, as rounds with several drafters need.
struct ToyDrafts {
  ToyDrafts(const ToyShape& shape, int n) {
    for (int i = 0; i < n; i++) models.push_back(std::make_unique<ToyModel>(draft_of(shape)));
  }
  std::vector<LanguageModel*> all() const {
    std::vector<LanguageModel*> all;
    for (const auto& model : models) all.push_back(model.get());
    return all;
  }
  std::vector<std::unique_ptr<ToyModel>> models;
};

/// Fails the test if fewer than n threads arrive.
class Meeting {
 public:
  explicit Meeting(int n) : n_(n) {}
  /// Waits until n calls have arrived; later calls do not wait.
  void arrive() {
    std::unique_lock lock(mutex_);
    n_arrived_++;
    bell_.notify_all();
    EXPECT_TRUE(bell_.wait_for(lock, std::chrono::seconds(60), [&] { return n_arrived_ >= n_; }));
  }

 private:
  int n_, n_arrived_ = 0;
  std::mutex mutex_;
  std::condition_variable bell_;
};

std::vector<Text> texts_of(Dice& dice, const Job& job, int vocab, int n) {
  std::vector<Text> texts;
  for (int i = 0; i < n; i++) {
    texts.push_back({dice.text(dice(1, 9), vocab), job});
    texts.back().job.sampling.seed = static_cast<std::uint64_t>(dice(1, 1 << 20));
    texts.back().job.limits.max_tokens = dice(1, 30);
  }
  return texts;
}

/// Chooses overlap or alternation at random.
class RandomOverlap final : public Overlap {
 public:
  explicit RandomOverlap(std::uint64_t seed) : dice_(seed) {}
  bool at_once(int /*n_branches*/) const override { return at_once_; }
  void measured(int /*n_branches*/, const RoundTime& /*per_text*/) override {
    at_once_ = dice_(0, 1) == 1;
  }

 private:
  Dice dice_;
  bool at_once_ = true;
};

/// Alternating, overlapping, adaptive or random, by the trial's number.
std::unique_ptr<Overlap> overlap_of_trial(int trial) {
  if (trial % 4 == 0) return std::make_unique<FixedOverlap>(false);
  if (trial % 4 == 1) return std::make_unique<FixedOverlap>(true);
  if (trial % 4 == 2) return std::make_unique<ChosenOverlap>();
  return std::make_unique<RandomOverlap>(static_cast<std::uint64_t>(trial));
}

const FirstComeFirstServed kFcfs;
constexpr ToyShape kShape{.vocab = 12, .context = 2, .seed = 3};

struct Kind {
  const char* decoder;
  OptionValues options;
};
const std::vector<Kind> kKinds{
    {"ar", {}},        {"speculative", {{"gamma", "4"}}},
    {"seed", {}},      {"seed", {{"k_config", "2,2,1"}}},
    {"lookahead", {}}, {"mcsd", {{"k_config", "3,1"}, {"rule", "with"}}}};
const std::vector<Sampling> kSamplings{{},
                                       {.temperature = 0.9f, .repetition_penalty = 1.2f},
                                       {.temperature = 0.9f, .mode = Sampling::Mode::Rejection}};

TEST(RoundsThreads, delays_and_policies_change_no_token) {
  Dice dice(7);
  int trial = 0;
  for (const Kind& kind : kKinds) {
    for (const Sampling& sampling : kSamplings) {
      for (const std::string& policy : policy_names()) {
        ToyModel target(kShape), draft(draft_of(kShape)), alone_target(kShape),
            alone_draft(draft_of(kShape));
        Job job{.decoder = kind.decoder, .options = kind.options, .sampling = sampling};
        job.limits.eos_ids = {5};
        job.draft = &draft;
        const std::vector<Text> texts = texts_of(dice, job, kShape.vocab, 7);
        const int n = 1 + trial % 5;
        const auto overlap = overlap_of_trial(trial);
        const auto by = policy_named(policy);
        const ToyDrafts drafts(kShape, n);
        Rounds rounds(n, *by, 1 + trial / 2 % 3, nullptr, {}, overlap.get(), 1 + trial / 3 % 3);
        LaneRounds work(target, texts, n, nullptr);
        if (rounds.n_drafters() > 1) work.drafts = drafts.all();
        work.draft_delay = delays(static_cast<std::uint64_t>(100 + trial));
        work.verify_delay = delays(static_cast<std::uint64_t>(200 + trial));
        run_in_time(rounds, work);
        for (std::size_t i = 0; i < texts.size(); i++) {
          Job same = texts[i].job;
          same.draft = &alone_draft;
          const Outcome alone = run(alone_target, texts[i].prompt, same);
          EXPECT_EQ(work.tokens[i], alone.tokens) << described(same) << " " << policy;
          EXPECT_EQ(work.n_steps[i], alone.n_steps) << described(same) << " " << policy;
          if (sampling.mode == Sampling::Mode::Coupled) {
            EXPECT_EQ(alone.tokens, run_ar(alone_target, texts[i].prompt, same).tokens);
          }
        }
        trial++;
      }
    }
  }
}

TEST(RoundsThreads, two_transformers_on_two_threads_decode_as_in_turn) {
  const auto target_device = kernels::open_cpu(2), draft_device = kernels::open_cpu(1);
  const auto target = tiny_transformer(*target_device, kernels::DType::BF16, 11);
  const auto draft = tiny_draft(*draft_device, kernels::DType::BF16, 11);
  Dice dice(8);
  for (const float temperature : {0.0f, 0.8f}) {
    Job job{.decoder = "seed", .options = {{"k_config", "2,1,1"}}};
    job.sampling.temperature = temperature;
    job.draft = draft.get();
    const std::vector<Text> texts = texts_of(dice, job, 24, 9);
    RandomOverlap overlap(3);
    Rounds rounds(3, kFcfs, 2, nullptr, {}, &overlap);
    LaneRounds work(*target, texts, 3, nullptr);
    run_in_time(rounds, work);
    for (std::size_t i = 0; i < texts.size(); i++)
      EXPECT_EQ(work.tokens[i], run_ar(*target, texts[i].prompt, texts[i].job).tokens);
  }
}

TEST(RoundsThreads, drafters_that_share_weights_decode_as_in_turn) {
  const auto target_device = kernels::open_cpu(2), draft_device = kernels::open_cpu(1);
  for (const auto dtype : {kernels::DType::BF16, kernels::DType::F32}) {
    const auto target = tiny_transformer(*target_device, dtype, 11);
    const auto draft = tiny_draft(*draft_device, dtype, 11);
    std::vector<std::unique_ptr<kernels::Device>> devices;
    std::vector<std::unique_ptr<Model>> models;
    for (int branch = 0; branch < 3; branch++) {
      devices.push_back(kernels::open_cpu(1 + branch % 2));
      models.push_back(draft->share_weights(*devices.back()));
      EXPECT_EQ(models.back()->weight_bytes(), draft->weight_bytes());
    }
    Dice dice(8);
    for (const float temperature : {0.0f, 0.8f}) {
      for (const int n_drafters : {1, 2, 3}) {
        Job job{.decoder = "seed", .options = {{"k_config", "2,1,1"}}};
        job.sampling.temperature = temperature;
        const std::vector<Text> texts = texts_of(dice, job, 24, 9);
        RandomOverlap overlap(3);
        Rounds rounds(3, kFcfs, 2, nullptr, {}, &overlap, n_drafters);
        LaneRounds work(*target, texts, 3, nullptr);
        for (const auto& model : models) work.drafts.push_back(model.get());
        run_in_time(rounds, work);
        EXPECT_LE(rounds.totals().most_drafting, n_drafters);
        for (std::size_t i = 0; i < texts.size(); i++)
          EXPECT_EQ(work.tokens[i], run_ar(*target, texts[i].prompt, texts[i].job).tokens);
      }
    }
    EXPECT_EQ(draft->cache_bytes(), 0) << "each branch has a cache of its own model";
    EXPECT_THROW(draft->share_weights(*draft_device), ContractError);
  }
}

// T16: one branch equals speculative decoding in every event.
TEST(RoundsThreads, one_branch_is_speculative_decoding_step_by_step) {
  for (const Sampling& sampling : kSamplings) {
    ToyModel target(kShape), draft(draft_of(kShape));
    Job job{.decoder = "seed", .options = {{"k_config", "1,1,1"}}, .sampling = sampling};
    job.draft = &draft;
    const std::vector<Text> texts{{{1, 2, 3, 1, 2}, job}};
    LockedList events;
    Rounds rounds(1, kFcfs, 1, nullptr);
    LaneRounds work(target, texts, 1, &events);
    run_in_time(rounds, work);
    job.decoder = "speculative";
    job.options = {{"gamma", "3"}};
    std::vector<Event> rest(events.list.events.begin() + 1, events.list.events.end());
    EXPECT_EQ(trace_of(rest), trace_of(run(target, texts[0].prompt, job).events)) << described(job);
  }
}

// If a draft hangs on its device, the events reported before show it. CU12.
TEST(RoundsThreads, events_continue_while_a_draft_blocks_the_target) {
  ToyModel target(kShape), draft(draft_of(kShape));
  Job job{.decoder = "seed"};
  job.draft = &draft;
  job.limits.max_tokens = 3;
  const std::vector<Text> texts(1, {{1, 2, 3}, job});
  Rounds rounds(1, kFcfs, 1, nullptr);
  LaneRounds work(target, texts, 1, nullptr);
  std::atomic<int> n_told = 0;
  work.draft_delay = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    const int before = n_told;
    while (n_told < before + 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const Deadline deadline;
  run_rounds(rounds, work, {}, [&] { n_told++; });
  EXPECT_EQ(work.tokens[0].size(), 3u);
}

TEST(RoundsThreads, drafting_and_verification_overlap) {
  ToyModel target(kShape), draft(draft_of(kShape));
  Job job{.decoder = "seed"};
  job.draft = &draft;
  job.limits.max_tokens = 30;
  const std::vector<Text> texts(2, {{1, 2, 3}, job});
  Rounds rounds(2, kFcfs, 1, nullptr);
  LaneRounds work(target, texts, 2, nullptr);
  // The second draft and the first verification each wait for the other's start.
  std::mutex mutex;
  std::condition_variable bell;
  int n_drafts = 0, n_verifications = 0;
  bool met = true;
  const auto meet = [&](int& own, const int& other, int first) {
    std::unique_lock lock(mutex);
    own++;
    bell.notify_all();
    if (own != first) return;
    met &= bell.wait_for(lock, std::chrono::seconds(60), [&] { return other >= 3 - first; });
  };
  work.draft_delay = [&] { meet(n_drafts, n_verifications, 2); };
  work.verify_delay = [&] { meet(n_verifications, n_drafts, 1); };
  run_in_time(rounds, work);
  EXPECT_TRUE(met);
}

// Each draft of the first round begins before another one ends, so their branches are between
// Dequeued("draft") and Queued("target") at once.
TEST(RoundsThreads, drafters_work_at_the_same_time) {
  for (const int n_drafters : {2, 3}) {
    ToyModel target(kShape), draft(draft_of(kShape));
    Job job{.decoder = "seed"};
    job.draft = &draft;
    job.limits.max_tokens = 20;
    const std::vector<Text> texts(5, {{1, 2, 3}, job});
    const ToyDrafts drafts(kShape, 3);
    LockedList events;
    Rounds rounds(3, kFcfs, 1, &events, {}, nullptr, n_drafters);
    LaneRounds work(target, texts, 3, &events);
    work.drafts = drafts.all();
    Meeting meeting(n_drafters);
    work.draft_delay = [&] { meeting.arrive(); };
    run_in_time(rounds, work);
    EXPECT_EQ(rounds.totals().most_drafting, n_drafters);
    std::set<int> drafting;
    std::size_t most = 0;
    Timeline timeline;
    for (const Event& event : events.list.events) {
      timeline.apply(event);
      if (const auto* e = std::get_if<Dequeued>(&event); e && e->resource == "draft") {
        EXPECT_TRUE(drafting.insert(e->branch).second);
        most = std::max(most, drafting.size());
      }
      if (const auto* e = std::get_if<Queued>(&event); e && e->resource == "target") {
        EXPECT_EQ(drafting.erase(e->branch), 1u);
      }
      if (const auto* e = std::get_if<Waiting>(&event); e && e->resource == "draft") {
        EXPECT_EQ(drafting, std::set<int>{e->branch}) << "no drafter worked until this branch came";
      }
    }
    EXPECT_EQ(most, static_cast<std::size_t>(n_drafters));
    EXPECT_EQ(timeline.n_inconsistent(), 0);
    for (const auto& tokens : work.tokens) EXPECT_EQ(tokens, work.tokens[0]);
    EXPECT_EQ(work.tokens[0], run_ar(target, texts[0].prompt, job).tokens);
  }
}

TEST(RoundsThreads, alternating_mode_never_overlaps) {
  ToyModel target(kShape), draft(draft_of(kShape));
  Job job{.decoder = "seed"};
  job.draft = &draft;
  job.limits.max_tokens = 20;
  const std::vector<Text> texts(4, {{1, 2, 3}, job});
  FixedOverlap never(false);
  Rounds rounds(3, kFcfs, 2, nullptr, {}, &never);
  LaneRounds work(target, texts, 3, nullptr);
  const auto own = std::this_thread::get_id();
  bool on_own = true;
  const auto look = [&] { on_own &= std::this_thread::get_id() == own; };
  work.draft_delay = look;
  work.verify_delay = look;
  run_in_time(rounds, work);
  EXPECT_TRUE(on_own) << "one thread runs both stages";
}

TEST(RoundsThreads, an_exception_on_any_thread_ends_all) {
  for (const int n_drafters : {1, 3}) {
    for (const bool on_draft : {true, false}) {
      for (const int at : {0, 1, 7}) {
        ToyModel target(kShape);
        Job job{.decoder = "seed"};
        job.limits.max_tokens = 40;
        const std::vector<Text> texts(5, {{1, 2, 3}, job});
        const ToyDrafts drafts(kShape, 3);
        RandomOverlap overlap(5);
        Rounds rounds(3, kFcfs, 1, nullptr, {}, at == 7 ? &overlap : nullptr, n_drafters);
        LaneRounds work(target, texts, 3, nullptr);
        work.drafts = drafts.all();
        auto n = std::make_shared<std::atomic<int>>(0);
        const auto fail = [n, at] {
          if ((*n)++ == at) throw Error(ErrorCode::Resources, "no more memory");
        };
        (on_draft ? work.draft_delay : work.verify_delay) = fail;
        EXPECT_THROW(run_in_time(rounds, work), Error);
      }
    }
  }
}

/// Throws on the n-th event of a kind, from 0.
template <class Refused>
class RefusingSink final : public EventSink {
 public:
  RefusingSink(const char* resource, int n) : resource_(resource), n_(n) {}
  void push(Event event) override {
    const auto* one = std::get_if<Refused>(&event);
    if (one && one->resource == resource_ && n_-- == 0)
      throw Error(ErrorCode::Resources, "the events have no room");
  }

 private:
  std::string resource_;
  int n_;
};

template <class Refused>
void expect_both_end_where_events_are_refused(const char* resource) {
  for (const int n : {0, 4}) {
    ToyModel target(kShape), draft(draft_of(kShape));
    Job job{.decoder = "seed"};
    job.draft = &draft;
    job.limits.max_tokens = 40;
    const std::vector<Text> texts(5, {{1, 2, 3}, job});
    RefusingSink<Refused> sink(resource, n);
    Rounds rounds(3, kFcfs, 1, &sink);
    LaneRounds work(target, texts, 3, nullptr);
    EXPECT_THROW(run_in_time(rounds, work), Error) << resource << " " << n;
  }
}

TEST(RoundsThreads, an_exception_in_the_event_sink_ends_both) {
  expect_both_end_where_events_are_refused<Queued>("target");    // on the drafting thread
  expect_both_end_where_events_are_refused<Dequeued>("draft");   // the same, before its work
  expect_both_end_where_events_are_refused<Queued>("draft");     // on the target's thread
  expect_both_end_where_events_are_refused<Dequeued>("target");  // the same
}

TEST(RoundsThreads, a_deadlock_fails_the_test_with_a_message) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_for_ever = [] {
    const Deadline deadline(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(wait_for_ever(), testing::ExitedWithCode(EXIT_FAILURE),
              "a_deadlock_fails_the_test_with_a_message: its threads have not finished within 1 s");
}

TEST(RoundsThreads, a_stop_ends_all_threads) {
  for (const int after : {0, 1, 2, 5, 20}) {
    ToyModel target(kShape), draft(draft_of(kShape));
    Job job{.decoder = "seed"};
    job.draft = &draft;
    const std::vector<Text> texts(6, {{1, 2, 3}, job});
    const ToyDrafts drafts(kShape, 3);
    Rounds rounds(3, kFcfs, 1, nullptr, {}, nullptr, after % 2 ? 3 : 1);
    LaneRounds work(target, texts, 3, nullptr);
    work.drafts = drafts.all();
    int n_asked = 0;
    run_in_time(rounds, work, [&] { return n_asked++ >= after; });
    EXPECT_LE(rounds.totals().n_verifications, after);
  }
}

TEST(RoundsThreads, a_timeline_accepts_the_order_of_events) {
  ToyModel target(kShape), draft(draft_of(kShape));
  Job job{.decoder = "seed"};
  job.draft = &draft;
  Dice dice(10);
  const std::vector<Text> texts = texts_of(dice, job, kShape.vocab, 5);
  LockedList events;
  Rounds rounds(3, kFcfs, 2, &events);
  LaneRounds work(target, texts, 3, &events);
  run_in_time(rounds, work);
  Timeline timeline;
  for (const Event& event : events.list.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0)
      << (timeline.inconsistencies().empty() ? "" : timeline.inconsistencies()[0]);
  for (std::size_t i = 0; i < texts.size(); i++) {
    const RunRecord& run = *timeline.run(static_cast<RunId>(i + 1));
    EXPECT_EQ(std::ssize(run.tokens), std::ssize(work.tokens[i]));
    int n_queued = 0, n_left = 0;
    for (const auto& e : run.queueing) {
      if (const auto* queued = std::get_if<Queued>(&e)) n_queued += queued->resource == "target";
      if (const auto* left = std::get_if<Dequeued>(&e)) n_left += left->resource == "target";
    }
    EXPECT_EQ(n_queued, work.n_steps[i]);
    EXPECT_EQ(n_left, work.n_steps[i]);
  }
}

}  // namespace
}  // namespace engine::test

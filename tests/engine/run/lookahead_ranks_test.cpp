// Lookahead over several ranks: for any number of ranks and any delays, every sequence, step and
// score equals that of one rank, and all ranks end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/ranks/lookahead_rank.h"
#include "engine/decode/ranks/lookahead_ranks.h"
#include "engine/decode/registry.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/race.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"
#include "tests/support/deadline.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

/// A model whose forwards may be delayed or fail.
class Watched final : public LanguageModel {
 public:
  explicit Watched(LanguageModel& model) : model_(model) {}
  int vocab_size() const override { return model_.vocab_size(); }
  int max_seq_len() const override { return model_.max_seq_len(); }
  std::unique_ptr<SequenceCache> make_cache() override { return model_.make_cache(); }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    if (before) before(items[0].pick_rows);
    return model_.forward(items, wants);
  }
  std::function<void(bool is_step)> before;  // called before each forward

 private:
  LanguageModel& model_;
};

/// Models for the ranks of a sequence, each wrapped in a Watched.
template <class M>
struct Ranks {
  std::vector<std::unique_ptr<kernels::Device>> devices;
  std::vector<std::unique_ptr<M>> models;
  std::vector<std::unique_ptr<Watched>> watched;
  std::vector<std::mutex> at_work{8};

  void add(std::unique_ptr<M> model) {
    models.push_back(std::move(model));
    watched.push_back(std::make_unique<Watched>(*models.back()));
  }
  LanguageModel& first() { return *watched[0]; }
  std::vector<OtherRank> others() {
    std::vector<OtherRank> others;
    for (std::size_t rank = 1; rank < watched.size(); rank++)
      others.push_back({watched[rank].get(), &at_work[rank]});
    return others;
  }
};

Ranks<ToyModel> toys(int n, const ToyShape& shape) {
  Ranks<ToyModel> ranks;
  for (int rank = 0; rank < n; rank++) ranks.add(std::make_unique<ToyModel>(shape));
  return ranks;
}

Ranks<Model> transformers(int n, kernels::DType dtype) {
  Ranks<Model> ranks;
  for (int rank = 0; rank < n; rank++) {
    ranks.devices.push_back(kernels::open_cpu(1));
    ranks.add(tiny_transformer(*ranks.devices.back(), dtype, 11));
  }
  return ranks;
}

/// Random options for lookahead that ranks support.
Job any_job(Dice& dice, int n_ranks, int max_tokens) {
  const auto number = [&](int low, int high) { return std::to_string(dice(low, high)); };
  const auto either = [&](const char* a, const char* b) { return dice(0, 1) ? a : b; };
  Job job;
  job.decoder = "lookahead";
  job.options = {{"window", number(1, 8)},
                 {"ngram_size", number(2, 6)},
                 {"n_guesses", number(0, 8)},
                 {"prompt_pool", either("true", "false")},
                 {"bonus", either("true", "false")},
                 {"merge", either("true", "false")},
                 {"advance", either("one", "accepted")},
                 {"preset", dice(0, 3) ? "none" : "paper"},
                 {"ranks", std::to_string(n_ranks)}};
  job.limits.max_tokens = max_tokens;
  job.sampling.seed = static_cast<std::uint64_t>(dice(0, 99));
  if (dice(0, 1)) job.sampling.temperature = 0.3f + 0.2f * static_cast<float>(dice(0, 4));
  if (dice(0, 2) == 0) job.sampling.top_k = 5;
  if (dice(0, 3) == 0) job.sampling.repetition_penalty = 1.2f;
  return job;
}

/// The same job on one rank.
Job on_one_rank(Job job) {
  job.options["ranks"] = "1";
  job.ranks.clear();
  return job;
}

std::vector<std::uint8_t> owners(const Outcome& outcome) {
  std::vector<std::uint8_t> owners;
  for (const Event& event : outcome.events)
    if (const auto* drafted = std::get_if<Drafted>(&event))
      owners.insert(owners.end(), drafted->tree.owner.begin(), drafted->tree.owner.end());
  return owners;
}

/// With ranks, a sequence has the tokens and stop reason of plain decoding, and every row,
/// prediction, score and n-gram of every step equals those of Lookahead on one rank.
template <class M>
void expect_equals_one_rank(Ranks<M>& ranks, const std::vector<TokenId>& prompt, Job job) {
  job.ranks = ranks.others();
  const Outcome shared = run(ranks.first(), prompt, job);
  const Outcome single = run(*ranks.models[0], prompt, on_one_rank(job));
  const Outcome ar = run_ar(*ranks.models[0], prompt, on_one_rank(job));
  ASSERT_EQ(shared.tokens, ar.tokens) << described(job);
  ASSERT_EQ(shared.stop, ar.stop) << described(job);
  ASSERT_EQ(shared.emitted_per_step, single.emitted_per_step) << described(job);
  ASSERT_EQ(trace_of(shared.events), trace_of(single.events)) << described(job);
  for (const auto& [name, n] : single.counts) ASSERT_EQ(shared.counts.at(name), n) << name;
}

TEST(LookaheadRanks, give_the_steps_of_one_rank) {
  const Deadline deadline;
  std::int64_t n_accepted = 0, n_won_elsewhere = 0, n_again = 0;
  for (std::uint64_t seed = 0; seed < 240; seed++) {
    Dice dice(seed);
    const int n_ranks = dice(2, 4);
    auto ranks = toys(n_ranks, {.vocab = dice(3, 9), .context = dice(1, 2), .seed = seed});
    const auto prompt = dice.text(dice(1, 20), ranks.models[0]->vocab_size());
    Job job = any_job(dice, n_ranks, dice(1, 60));
    expect_equals_one_rank(ranks, prompt, job);
    if (HasFatalFailure()) return;
    job.ranks = ranks.others();
    const Outcome shared = run(ranks.first(), prompt, job);
    n_accepted += shared.n_accepted;
    n_won_elsewhere += shared.counts.at("won_elsewhere");
    n_again += shared.counts.at("rows_again");
  }
  EXPECT_GT(n_accepted, 1000);
  EXPECT_GT(n_won_elsewhere, 200) << "rank 0 found nearly every match";
  EXPECT_GT(n_again, 200) << "ranks seldom lacked the winner's rows";
}

TEST(LookaheadRanks, equal_plain_decoding_on_a_transformer) {
  const Deadline deadline(std::chrono::seconds(240));
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    auto ranks = transformers(3, dtype);
    for (std::uint64_t seed = 0; seed < 12; seed++) {
      Dice dice(seed);
      Job job = any_job(dice, 2 + static_cast<int>(seed % 2), 48);
      expect_equals_one_rank(ranks, dice.text(dice(1, 20), 24), job);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(LookaheadRanks, delays_change_nothing) {
  const Deadline deadline;
  for (std::uint64_t seed = 0; seed < 24; seed++) {
    Dice dice(1000 + seed);
    auto ranks = toys(3, {.vocab = 5, .context = 1, .seed = seed});
    std::vector<Dice> delays;
    for (int rank = 0; rank < 3; rank++)
      delays.emplace_back(7 * seed + static_cast<unsigned>(rank));
    for (std::size_t rank = 0; rank < 3; rank++) {
      ranks.watched[rank]->before = [dice = &delays[rank]](bool) {
        std::this_thread::sleep_for(std::chrono::microseconds((*dice)(0, 3) * 150));
      };
    }
    expect_equals_one_rank(ranks, dice.text(9, 5), any_job(dice, 3, 30));
    if (HasFatalFailure()) return;
  }
}

TEST(LookaheadRanks, stop_at_any_length_and_any_eos_position) {
  const Deadline deadline;
  for (int n_ranks = 2; n_ranks <= 3; n_ranks++) {
    auto ranks = toys(n_ranks, {.vocab = 5, .context = 2, .seed = 4});
    Dice dice(3);
    const auto prompt = dice.text(12, 5);
    for (const float temperature : {0.0f, 0.8f}) {
      for (int length = 1; length <= 24; length++) {
        Job job;
        job.decoder = "lookahead";
        job.options = {{"ranks", std::to_string(n_ranks)},
                       {"window", "4"},
                       {"ngram_size", "4"},
                       {"n_guesses", "4"}};
        job.limits.max_tokens = length;
        job.sampling.temperature = temperature;
        expect_equals_one_rank(ranks, prompt, job);
        if (HasFatalFailure()) return;
        job.limits.max_tokens = 24;
        const Outcome ar = run_ar(*ranks.models[0], prompt, on_one_rank(job));
        job.limits.eos_ids = {ar.tokens.at(static_cast<std::size_t>(length) - 1)};
        expect_equals_one_rank(ranks, prompt, job);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(LookaheadRanks, fill_the_context_to_its_last_position) {
  const Deadline deadline;
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    Dice dice(seed);
    auto ranks = toys(3, {.vocab = 4, .context = 1, .max_seq_len = 40, .seed = seed});
    expect_equals_one_rank(ranks, dice.text(dice(1, 30), 4), any_job(dice, 3, 100));
    if (HasFatalFailure()) return;
  }
}

TEST(LookaheadRanks, split_guesses_and_columns_into_consecutive_chunks) {
  const Deadline deadline;
  auto ranks = toys(3, {.vocab = 4, .context = 1, .seed = 2});
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ranks", "3"}, {"preset", "paper"}, {"window", "7"}, {"ngram_size", "4"}};
  job.limits.max_tokens = 60;
  job.ranks = ranks.others();
  const Outcome outcome = run(ranks.first(), {1, 2, 3, 1}, job);
  std::int64_t n_rows = 0;
  for (const Event& event : outcome.events) {
    const auto* drafted = std::get_if<Drafted>(&event);
    if (!drafted || drafted->step < 2) continue;  // the window is full
    const TokenTree& tree = drafted->tree;
    int n_guesses = 0;
    for (const RowTag& tag : tree.tag)
      if (tag.kind == RowTag::Kind::Guess) n_guesses = std::max(n_guesses, tag.a + 1);
    for (std::size_t r = 0; r < tree.token.size(); r++) {
      const RowTag tag = tree.tag[r];
      int owner = 0;  // ceil(7 / 3) columns each
      if (tag.kind == RowTag::Kind::Window) owner = tag.b / 3;
      if (tag.kind == RowTag::Kind::Guess) owner = tag.a / ((n_guesses + 2) / 3);
      EXPECT_EQ(tree.owner[r], owner) << "row " << r;
    }
    n_rows += tree.n_rows();
  }
  EXPECT_GT(n_rows, 0);
  EXPECT_TRUE(owners(run(*ranks.models[0], {1, 2, 3, 1}, on_one_rank(job))).empty());
}

// The slowest rank bounds the step: with the paper's sizes it has less than half of all rows.
TEST(LookaheadRanks, compute_fewer_rows_and_exchange_few_numbers) {
  const Deadline deadline;
  auto ranks = toys(3, {.vocab = 4, .context = 1, .seed = 2});
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ranks", "3"}, {"preset", "paper"}};
  job.limits.max_tokens = 200;
  const Outcome single = run(*ranks.models[0], {1, 2, 3, 1}, on_one_rank(job));
  job.ranks = ranks.others();
  const Outcome outcome = run(ranks.first(), {1, 2, 3, 1}, job);
  std::int64_t sum = 0;
  for (const char* name : {"rank_rows_0", "rank_rows_1", "rank_rows_2"}) {
    const std::int64_t own = outcome.counts.at(name);
    EXPECT_LT(own, single.counts.at("rows") / 2) << name;
    sum += own;
  }
  EXPECT_EQ(outcome.counts.at("rows"), single.counts.at("rows"));
  EXPECT_GE(sum, outcome.counts.at("rows"));
  EXPECT_EQ(outcome.metrics.at("ranks"), 3);
  // Numbers per step: 1 starts it, 5 hold the prediction, 5 per rank describe its match, at most 4
  // * 6 hold the matched rows, and 18 the fifteen new cells of the window.
  EXPECT_LE(outcome.counts.at("exchanged_numbers"), outcome.n_steps * (1 + 5 + 3 * 5 + 4 * 6 + 18));
  EXPECT_GE(outcome.counts.at("exchanged_numbers"), outcome.n_steps * (1 + 5 + 3 * 5));
}

// The second rank takes 3 ms longer.
TEST(LookaheadRanks, report_the_bytes_and_waits_of_every_step) {
  const Deadline deadline;
  auto ranks = toys(3, {.vocab = 4, .context = 1, .seed = 2});
  ranks.watched[1]->before = [](bool is_step) {
    if (is_step) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ranks", "3"}, {"window", "4"}, {"ngram_size", "3"}};
  job.limits.max_tokens = 30;
  job.ranks = ranks.others();
  const Outcome outcome = run(ranks.first(), {1, 2, 3, 1}, job);
  std::int64_t n_bytes = 0, n_steps = 0;
  Nanoseconds time = 0;
  for (const Event& event : outcome.events) {
    const auto* verified = std::get_if<Verified>(&event);
    if (!verified) continue;
    n_steps++;
    ASSERT_EQ(verified->exchange.size(), 1U);
    const RankExchange& exchange = verified->exchange[0];
    ASSERT_EQ(exchange.forward.size(), 3U);
    EXPECT_GE(exchange.forward[1], 3'000'000);
    EXPECT_GE(exchange.forward[0] + exchange.wait_of(0), exchange.forward[1]);
    n_bytes += exchange.n_bytes;
    time += exchange.time;
  }
  EXPECT_EQ(n_steps, outcome.n_steps);
  EXPECT_EQ(n_bytes, 4 * outcome.counts.at("exchanged_numbers"));
  EXPECT_GE(time, n_steps);
  for (const Event& event : run(*ranks.models[0], {1, 2, 3, 1}, on_one_rank(job)).events) {
    const auto* verified = std::get_if<Verified>(&event);
    EXPECT_TRUE(!verified || verified->exchange.empty());
  }
}

/// Hooks into every rank: a wrapper of its exchange that may alter messages, and a call after each
/// step.
struct RankHooks {
  std::function<std::unique_ptr<Exchange>(Exchange&)> wrap;  // may be empty
  std::function<void(int rank, const Lane&)> stepped;        // may be empty
};

struct RankResults {
  std::vector<std::vector<TokenId>> tokens;  // by rank
  int n_steps = 0;
  bool failed = false;
};

/// Runs the ranks as threads of this test.
template <class M>
RankResults run_ranks(Ranks<M>& ranks,
                      const std::vector<TokenId>& prompt,
                      const Job& job,
                      RankHooks telling) {
  const auto n_ranks = static_cast<int>(ranks.models.size());
  ThreadExchange exchange(n_ranks);
  RankResults results;
  results.tokens.resize(ranks.models.size());
  std::atomic<bool> failed = false;
  const auto serve = [&](int rank) {
    try {
      const auto wrapped =
          telling.wrap ? telling.wrap(exchange.of(rank)) : std::unique_ptr<Exchange>();
      LanguageModel& own = *ranks.models[static_cast<std::size_t>(rank)];
      LookaheadRank model(own, wrapped ? *wrapped : exchange.of(rank));
      Lane lane = start(own, prompt, job);
      lane.sequence = ranked(lane.sequence);
      Stepper stepper(model, nullptr);
      Lane* lanes[] = {&lane};
      while (rank == 0 ? !lane.sequence.finished() : model.wait_for_step()) {
        stepper.step(lanes);
        if (telling.stepped) telling.stepped(rank, lane);
        if (lane.n_steps > 500) throw std::runtime_error("the run does not end");
      }
      if (rank == 0) model.end_steps(), results.n_steps = lane.n_steps;
      const auto generated = lane.sequence.generated();
      results.tokens[static_cast<std::size_t>(rank)].assign(generated.begin(), generated.end());
    } catch (...) {
      failed = true;
      exchange.fail(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < n_ranks; rank++) threads.emplace_back(serve, rank);
  serve(0);
  for (std::thread& thread : threads) thread.join();
  results.failed = failed;
  return results;
}

TEST(LookaheadRanks, every_cache_equals_a_fresh_prefill) {
  const Deadline deadline(std::chrono::seconds(240));
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    auto ranks = transformers(3, dtype);
    Job job;
    job.decoder = "lookahead";
    job.options = {{"ranks", "3"}, {"window", "4"}, {"ngram_size", "4"}, {"n_guesses", "6"}};
    job.limits.max_tokens = 40;
    std::mutex mutex;
    int n_behind = 0, n_steps = 0;
    const RankResults results = run_ranks(
        ranks, {3, 7, 3, 7, 5, 3, 7}, job, {.stepped = [&](int rank, const Lane& lane) {
          const Model& model = *ranks.models[static_cast<std::size_t>(rank)];
          auto& cache = const_cast<SequenceCache&>(lane.sequence.cache());
          SequenceCache& own = static_cast<LookaheadRankCache&>(cache).own();
          const std::lock_guard lock(mutex);
          n_steps++;
          n_behind += own.length() < cache.length();
          ASSERT_GE(own.length(), cache.length() - 3);
          const auto tokens =
              lane.sequence.tokens().first(static_cast<std::size_t>(own.length()) + 1);
          Sequence fresh({tokens.begin(), tokens.end()}, const_cast<Model&>(model).make_cache());
          prefill(const_cast<Model&>(model), fresh, 64);
          std::vector<float> k, v, fresh_k, fresh_v;
          for (int layer = 0; layer < model.config().n_layers; layer++) {
            model.read_cache(own, layer, k, v);
            model.read_cache(fresh.cache(), layer, fresh_k, fresh_v);
            ASSERT_EQ(k, fresh_k) << "rank " << rank << " layer " << layer;
            ASSERT_EQ(v, fresh_v) << "rank " << rank << " layer " << layer;
          }
        }});
    ASSERT_FALSE(results.failed);
    EXPECT_EQ(results.tokens[1], results.tokens[0]);
    EXPECT_EQ(results.tokens[2], results.tokens[0]);
    EXPECT_GT(n_behind, 0) << "in " << n_steps << " steps no rank lacked a row";
  }
}

enum class Alteration {
  None,
  ShortestWins,   // the rank with the shortest match sends its rows
  LastRowLost,    // the last of the winner's rows is not sent
  OtherAnswer,    // the step's prediction is another token
  WindowTurned,   // the new window row with the ranks' columns in another order
  OneRankMisses,  // only one rank receives a match with one row less
};

/// An exchange that alters messages, alike for all ranks except with OneRankMisses.
class AlteringExchange final : public Exchange {
 public:
  AlteringExchange(Exchange& exchange, Alteration alteration, int vocab)
      : exchange_(exchange), lie_(alteration), vocab_(vocab) {}
  int rank() const override { return exchange_.rank(); }
  int n_ranks() const override { return exchange_.n_ranks(); }
  void broadcast(int from, Numbers& numbers) override {
    exchange_.broadcast(from, numbers);
    const bool is_answer = numbers.size() == 5, is_match = numbers.size() > 5;
    if (lie_ == Alteration::OtherAnswer && is_answer) numbers[0] = (numbers[0] + 1) % vocab_;
    const bool mishears =
        lie_ == Alteration::OneRankMisses && rank() == n_ranks() - 1 && from != rank();
    if ((lie_ == Alteration::LastRowLost || mishears) && is_match)
      numbers.resize(numbers.size() - 6);
  }
  std::vector<Numbers> all_gather(std::span<const std::int32_t> own) override {
    std::vector<Numbers> all = exchange_.all_gather(own);
    const bool is_match = n_gathers_++ % 2 == 0;
    if (is_match && lie_ == Alteration::ShortestWins)
      for (Numbers& one : all) one[0] = -one[0];
    if (!is_match && lie_ == Alteration::WindowTurned) {
      Numbers ids;
      for (const Numbers& one : all) ids.insert(ids.end(), one.begin(), one.end());
      for (Numbers& one : all)
        for (std::int32_t& id : one) id = ids.back(), ids.pop_back();
    }
    return all;
  }

 private:
  Exchange& exchange_;
  Alteration lie_;
  int vocab_;
  int n_gathers_ = 0;
};

/// Number of sequences that differ from one rank's in a token or in the number of steps.
int n_different(Alteration alteration) {
  int n = 0;
  for (std::uint64_t seed = 0; seed < 12; seed++) {
    auto ranks = toys(3, {.vocab = 4, .context = 1, .seed = seed});
    Job job;
    job.decoder = "lookahead";
    job.options = {{"ranks", "3"},
                   {"window", "6"},
                   {"ngram_size", "4"},
                   {"n_guesses", "6"},
                   {"merge", "false"}};
    job.limits.max_tokens = 60;
    if (seed % 2) job.sampling.temperature = 0.5f;
    Dice dice(seed);
    const auto prompt = dice.text(8, 4);
    const Outcome single = run(*ranks.models[0], prompt, on_one_rank(job));
    const RankResults results =
        run_ranks(ranks, prompt, job, {.wrap = [alteration](Exchange& exchange) {
                    return std::make_unique<AlteringExchange>(exchange, alteration, 4);
                  }});
    n += results.failed || results.tokens[0] != single.tokens || results.n_steps != single.n_steps;
  }
  return n;
}

// A control: the comparison with one rank detects common mistakes in the exchange.
TEST(LookaheadRanks, any_altered_message_is_detected) {
  const Deadline deadline;
  EXPECT_EQ(n_different(Alteration::None), 0);
  for (const Alteration alteration :
       {Alteration::ShortestWins, Alteration::LastRowLost, Alteration::OtherAnswer,
        Alteration::WindowTurned, Alteration::OneRankMisses})
    EXPECT_GT(n_different(alteration), 0) << static_cast<int>(alteration);
}

/// Error and output of a sequence with a fault in one rank.
struct Ended {
  std::string why;
  std::size_t n_tokens = 0;
};

Ended ended_by(std::size_t rank, int at_step, const std::function<void()>& fault) {
  auto ranks = toys(3, {.vocab = 5, .context = 2, .seed = 4});
  int n_steps = 0;
  ranks.watched[rank]->before = [&](bool is_step) {
    if (is_step ? n_steps++ == at_step : at_step < 0) fault();
  };
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ranks", "3"}};
  job.ranks = ranks.others();
  Ended ended;
  EventList events;
  try {
    Lane lane = start(ranks.first(), {1, 2, 3, 4}, job);
    Stepper stepper(ranks.first(), &events);
    Lane* lanes[] = {&lane};
    while (!lane.sequence.finished()) stepper.step(lanes);
    ADD_FAILURE() << "nothing failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Device);
    ended.why = error.what();
  } catch (const std::exception& error) {
    ended.why = error.what();
  }
  for (const Event& event : events.events)
    if (const auto* committed = std::get_if<Committed>(&event))
      ended.n_tokens += committed->tokens.size();
  return ended;
}

TEST(LookaheadRanks, a_failing_rank_ends_the_run_and_keeps_its_tokens) {
  const Deadline deadline;
  const auto device = [] { throw Error(ErrorCode::Device, "the device is gone"); };
  for (const int at : {0, 1, 5}) {
    for (std::size_t rank = 0; rank < 3; rank++) {
      const Ended ended = ended_by(rank, at, device);
      EXPECT_THAT(ended.why, HasSubstr("the device is gone"));
      if (rank > 0) {
        EXPECT_THAT(ended.why, HasSubstr("rank " + std::to_string(rank) + " on a device"));
      }
      EXPECT_GE(ended.n_tokens, static_cast<std::size_t>(at));
    }
  }
  // One rank fails during prefill, another with an exception other than Error.
  EXPECT_EQ(ended_by(2, -1, device).why, "rank 2 on a device of the test: the device is gone");
  EXPECT_EQ(ended_by(1, 3, [] { throw std::runtime_error("a fault"); }).why, "a fault");
}

TEST(LookaheadRanks, end_when_the_sequence_is_destroyed) {
  const Deadline deadline;
  std::atomic<int> n_forwards = 0;
  for (int n_steps = 0; n_steps < 6; n_steps++) {
    auto ranks = toys(4, {.vocab = 5, .context = 2, .seed = 4});
    for (std::size_t rank = 1; rank < 4; rank++)
      ranks.watched[rank]->before = [&](bool) {
        n_forwards++;
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      };
    Job job;
    job.decoder = "lookahead";
    job.options = {{"ranks", "4"}};
    job.ranks = ranks.others();
    {
      Lane lane = start(ranks.first(), {1, 2, 3, 4}, job);
      Stepper stepper(ranks.first(), nullptr);
      Lane* lanes[] = {&lane};
      for (int step = 0; step < n_steps; step++) stepper.step(lanes);
      EXPECT_EQ(lane.n_steps, n_steps);
    }
    const int n = n_forwards;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(n_forwards, n) << "ranks work without a sequence";
  }
}

TEST(LookaheadRanks, a_stop_does_not_wait_for_ranks_in_prefill) {
  const Deadline deadline;
  auto ranks = toys(2, {.vocab = 5, .context = 2, .seed = 4});
  std::atomic<bool> asked = false;
  ranks.watched[1]->before = [&](bool) {
    while (!asked) std::this_thread::yield();  // it would prefill forever
  };
  LookaheadRanks shared(
      ranks.first(), {{*ranks.watched[1], ranks.at_work[1], "the test"}},
      {{1, 2, 3}, parse_options("lookahead", {{"ranks", "2"}}), {.target = ranks.first()}});
  try {
    shared.wait_until_ready([&] {
      asked = true;
      return false;
    });
    FAIL() << "expected a cancellation";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
}

// The sequences are lanes of a race, whose other ranks share the same models.
TEST(LookaheadRanks, interleaved_sequences_decode_as_alone) {
  const Deadline deadline;
  auto ranks = transformers(3, kernels::DType::F32);
  Race race(ranks.first(), nullptr);
  std::vector<Job> jobs;
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint64_t seed = 0; seed < 4; seed++) {
    Dice dice(seed);
    jobs.push_back(any_job(dice, 2 + static_cast<int>(seed % 2), 24));
    jobs.back().ranks = ranks.others();
    prompts.push_back(dice.text(10, 24));
    race.add(start(ranks.first(), prompts.back(), jobs.back(), static_cast<RunId>(seed + 1)));
  }
  while (race.step_next()) {
  }
  for (std::size_t i = 0; i < jobs.size(); i++) {
    const auto generated = race.lanes()[i]->sequence.generated();
    EXPECT_EQ(std::vector(generated.begin(), generated.end()),
              run_ar(*ranks.models[0], prompts[i], on_one_rank(jobs[i])).tokens);
  }
}

TEST(LookaheadRanks, each_rank_keeps_its_own_model_loaded) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 4);
  RunRequest request{.prompt_id = "p",
                     .prompt = "def add(a, b):",
                     .decoder = "lookahead",
                     .options = {{"ranks", "4"}, {"window", "4"}},
                     .max_tokens = 24};
  RunModels models = models_for(store, {}, {}, "lookahead", request.options);
  ASSERT_EQ(models.ranks.size(), 3u);
  for (const LoadedModel* rank : models.ranks) {
    EXPECT_EQ(rank->weights_hash, models.target.weights_hash);
    EXPECT_EQ(rank->model->device().n_threads(), 1);
    EXPECT_NE(&rank->model->device(), &models.target.model->device());
  }
  EXPECT_EQ(store.get_ranks(models.target, 4), models.ranks) << "ranks stay loaded";
  request.prompt_tokens = tokenize_prompt(*models.target.model, request.prompt);
  EventList events;
  events.push(describe(models.target));
  const RunResult shared = run_to_end(models, request, 1, &events);
  RunRequest plain = request;
  plain.decoder = "ar", plain.options = {};
  EXPECT_EQ(shared.tokens, run_to_end(models, plain, 2, nullptr).tokens);
  EXPECT_EQ(shared.metrics.at("ranks"), 4);
  EXPECT_GT(shared.metrics.at("longest_rank_ms"), 0);
  Timeline timeline;
  for (const Event& event : events.events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST(LookaheadRanks, alternate_between_sequences_under_a_scheduler) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 2);
  const OptionValues options{{"ranks", "2"}, {"window", "4"}, {"n_guesses", "6"}};
  const RunModels models = models_for(store, {}, {}, "lookahead", options);
  const auto continued = [&](const std::string& decoder, const OptionValues& set) {
    const auto scheduler = make_scheduler(models, decoder, set, 2);
    std::vector<CompletionRequest> requests(3);
    for (std::size_t i = 0; i < requests.size(); i++) {
      requests[i].run = {.decoder = decoder, .options = set, .max_tokens = 12};
      requests[i].run.prompt_tokens =
          tokenize_prompt(*models.target.model, "Question " + std::to_string(i) + ": 2 + 2 = ");
    }
    std::vector<Completion> first = scheduler->run(requests, {});
    std::vector<Sequence> ends;
    for (Completion& completion : first) ends.push_back(completion.end.restarted());
    for (std::size_t i = 0; i < requests.size(); i++) {
      requests[i].from = &ends[i];
      requests[i].run.prompt_tokens.assign(ends[i].tokens().begin(), ends[i].tokens().end());
    }
    std::vector<std::vector<TokenId>> texts;
    for (const Completion& completion : scheduler->run(requests, {}))
      texts.push_back(completion.result.tokens);
    return texts;
  };
  EXPECT_EQ(continued("lookahead", options), continued("ar", {}));
}

TEST(LookaheadRanks, are_refused_where_results_would_differ) {
  const auto refused = [](const OptionValues& options, const Sampling& sampling) {
    const DecoderInfo& info = decoder_named("lookahead");
    try {
      return refusal(info, sampling, complete_options(info, options)).value_or("");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Usage);
      return std::string(error.what());
    }
  };
  const Sampling drawn{.temperature = 1, .mode = Sampling::Mode::Rejection};
  EXPECT_THAT(refused({{"ranks", "2"}}, drawn), HasSubstr("sampling=rejection and ranks=2"));
  EXPECT_EQ(refused({{"ranks", "1"}}, drawn), "");
  EXPECT_EQ(refused({{"ranks", "2"}}, {.mode = Sampling::Mode::Rejection}), "");  // greedy
  EXPECT_FALSE(parse_options("lookahead", {{"ranks", "2"}})->chooses_sizes())
      << "alike on all ranks";
  EXPECT_THAT(refused({{"ranks", "0"}}, {}), HasSubstr("between 1 and 16"));
}

}  // namespace
}  // namespace engine::test

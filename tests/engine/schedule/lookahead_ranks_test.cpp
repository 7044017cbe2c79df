// Lookahead parallelism: whatever the ranks, their delays and the numbers they tell, every text,
// every step and every score is that of one rank alone; and all ranks come to rest.
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

#include "engine/decode/guess/lookahead_rank.h"
#include "engine/decode/registry.h"
#include "engine/event/timeline/timeline.h"
#include "engine/run/lookahead_ranks.h"
#include "engine/run/race.h"
#include "engine/run/run.h"
#include "engine/run/scheduler.h"
#include "tests/engine/decode/run.h"
#include "tests/engine/decode/tiny_transformer.h"
#include "tests/engine/decode/toy_model.h"
#include "tests/engine/schedule/in_time.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

/// A model whose forwards are waited for, or fail.
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
  std::function<void(bool is_step)> before;  // each forward

 private:
  LanguageModel& model_;
};

/// Models for the ranks of a text, each watched.
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

/// Lookahead with any option that ranks may have.
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

/// The same on one rank.
Job alone(Job job) {
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

/// Shared among its ranks a text is what it is alone: tokens and end those of plain decoding, every
/// row, answer, score and n-gram of every step those of Lookahead on one rank.
template <class M>
void expect_as_alone(Ranks<M>& ranks, const std::vector<TokenId>& prompt, Job job) {
  job.ranks = ranks.others();
  const Outcome shared = run(ranks.first(), prompt, job);
  const Outcome single = run(*ranks.models[0], prompt, alone(job));
  const Outcome ar = run_ar(*ranks.models[0], prompt, alone(job));
  ASSERT_EQ(shared.tokens, ar.tokens) << described(job);
  ASSERT_EQ(shared.stop, ar.stop) << described(job);
  ASSERT_EQ(shared.emitted_per_step, single.emitted_per_step) << described(job);
  ASSERT_EQ(trace_of(shared.events), trace_of(single.events)) << described(job);
  for (const auto& [name, n] : single.counts) ASSERT_EQ(shared.counts.at(name), n) << name;
}

TEST(LookaheadRanks, write_what_one_rank_writes_step_by_step) {
  const Deadline deadline;
  std::int64_t n_accepted = 0, n_won_elsewhere = 0, n_again = 0;
  for (std::uint64_t seed = 0; seed < 240; seed++) {
    Dice dice(seed);
    const int n_ranks = dice(2, 4);
    auto ranks = toys(n_ranks, {.vocab = dice(3, 9), .context = dice(1, 2), .seed = seed});
    const auto prompt = dice.text(dice(1, 20), ranks.models[0]->vocab_size());
    Job job = any_job(dice, n_ranks, dice(1, 60));
    expect_as_alone(ranks, prompt, job);
    if (HasFatalFailure()) return;
    job.ranks = ranks.others();
    const Outcome shared = run(ranks.first(), prompt, job);
    n_accepted += shared.n_accepted;
    n_won_elsewhere += shared.counts.at("won_elsewhere");
    n_again += shared.counts.at("rows_again");
  }
  EXPECT_GT(n_accepted, 1000);
  EXPECT_GT(n_won_elsewhere, 200) << "rank 0 had nearly every match";
  EXPECT_GT(n_again, 200) << "no rank lacked what another had won";
}

TEST(LookaheadRanks, write_plain_decodings_bits_on_a_transformer) {
  const Deadline deadline(std::chrono::seconds(240));
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    auto ranks = transformers(3, dtype);
    for (std::uint64_t seed = 0; seed < 12; seed++) {
      Dice dice(seed);
      Job job = any_job(dice, 2 + static_cast<int>(seed % 2), 48);
      expect_as_alone(ranks, dice.text(dice(1, 20), 24), job);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(LookaheadRanks, may_be_as_slow_as_they_like) {
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
    expect_as_alone(ranks, dice.text(9, 5), any_job(dice, 3, 30));
    if (HasFatalFailure()) return;
  }
}

TEST(LookaheadRanks, end_at_every_length_and_at_an_end_token_at_every_offset) {
  const Deadline deadline;
  for (int n_ranks = 2; n_ranks <= 3; n_ranks++) {
    auto ranks = toys(n_ranks, {.vocab = 5, .context = 2, .seed = 4});
    Dice dice(3);
    const auto prompt = dice.text(12, 5);
    for (const float temperature : {0.0f, 0.8f}) {
      for (int length = 1; length <= 24; length++) {
        Job job;
        job.decoder = "lookahead";
        job.options = {{"ranks", std::to_string(n_ranks)}, {"window", "4"}, {"ngram_size", "4"}};
        job.limits.max_tokens = length;
        job.sampling.temperature = temperature;
        expect_as_alone(ranks, prompt, job);
        if (HasFatalFailure()) return;
        job.limits.max_tokens = 24;
        const Outcome ar = run_ar(*ranks.models[0], prompt, alone(job));
        job.limits.eos_ids = {ar.tokens.at(static_cast<std::size_t>(length) - 1)};
        expect_as_alone(ranks, prompt, job);
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
    expect_as_alone(ranks, dice.text(dice(1, 30), 4), any_job(dice, 3, 100));
    if (HasFatalFailure()) return;
  }
}

TEST(LookaheadRanks, share_guesses_and_columns_in_chunks_that_follow_each_other) {
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
  EXPECT_TRUE(owners(run(*ranks.models[0], {1, 2, 3, 1}, alone(job))).empty());
}

// The longest rank bounds the step: with the paper's sizes it has less than half of all rows.
TEST(LookaheadRanks, compute_fewer_rows_each_and_tell_few_numbers) {
  const Deadline deadline;
  auto ranks = toys(3, {.vocab = 4, .context = 1, .seed = 2});
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ranks", "3"}, {"preset", "paper"}};
  job.limits.max_tokens = 200;
  const Outcome single = run(*ranks.models[0], {1, 2, 3, 1}, alone(job));
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
  // A step's go, an answer, five numbers a rank, at most four rows of a match, fifteen columns.
  EXPECT_LE(outcome.counts.at("told_numbers"), outcome.n_steps * (1 + 5 + 3 * 5 + 4 * 6 + 18));
  EXPECT_GE(outcome.counts.at("told_numbers"), outcome.n_steps * (1 + 5 + 3 * 5));
}

/// A rank's steps with what it holds after each, over an exchange that may lie.
struct Telling {
  std::function<std::unique_ptr<Exchange>(Exchange&)> wrap;  // or empty
  std::function<void(int rank, const Lane&)> stepped;        // or empty
};

struct ByRanks {
  std::vector<std::vector<TokenId>> tokens;  // by rank
  int n_steps = 0;
  bool failed = false;
};

/// Ranks as threads of this test.
template <class M>
ByRanks tell(Ranks<M>& ranks, const std::vector<TokenId>& prompt, const Job& job, Telling telling) {
  const auto n_ranks = static_cast<int>(ranks.models.size());
  ThreadExchange exchange(n_ranks);
  ByRanks told;
  told.tokens.resize(ranks.models.size());
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
        if (lane.n_steps > 500) throw std::runtime_error("a run that does not end");
      }
      if (rank == 0) model.end_steps(), told.n_steps = lane.n_steps;
      const auto generated = lane.sequence.generated();
      told.tokens[static_cast<std::size_t>(rank)].assign(generated.begin(), generated.end());
    } catch (...) {
      failed = true;
      exchange.fail(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < n_ranks; rank++) threads.emplace_back(serve, rank);
  serve(0);
  for (std::thread& thread : threads) thread.join();
  told.failed = failed;
  return told;
}

TEST(LookaheadRanks, hold_the_bits_of_a_fresh_prompt_in_every_cache) {
  const Deadline deadline(std::chrono::seconds(240));
  for (const auto dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    auto ranks = transformers(3, dtype);
    Job job;
    job.decoder = "lookahead";
    job.options = {{"ranks", "3"}, {"window", "4"}, {"ngram_size", "4"}, {"n_guesses", "6"}};
    job.limits.max_tokens = 40;
    std::mutex mutex;
    int n_behind = 0, n_steps = 0;
    const ByRanks told = tell(
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
    ASSERT_FALSE(told.failed);
    EXPECT_EQ(told.tokens[1], told.tokens[0]);
    EXPECT_EQ(told.tokens[2], told.tokens[0]);
    EXPECT_GT(n_behind, 0) << "in " << n_steps << " steps no rank lacked a row";
  }
}

enum class Lie {
  None,
  ShortestWins,  // the rank of the shortest match tells its rows
  LastRowLost,   // of the winner's rows
  OtherAnswer,   // another token behind the last one
  WindowTurned,  // the window's new row with the ranks' columns in another order
  OneIsNotTold,  // one rank alone hears of a match one row shorter
};

/// An exchange whose ranks all hear the same lie, where the lie is not that one hears another.
class Lying final : public Exchange {
 public:
  Lying(Exchange& exchange, Lie lie, int vocab) : exchange_(exchange), lie_(lie), vocab_(vocab) {}
  int rank() const override { return exchange_.rank(); }
  int n_ranks() const override { return exchange_.n_ranks(); }
  void broadcast(int from, Numbers& numbers) override {
    exchange_.broadcast(from, numbers);
    const bool is_answer = numbers.size() == 5, is_match = numbers.size() > 5;
    if (lie_ == Lie::OtherAnswer && is_answer) numbers[0] = (numbers[0] + 1) % vocab_;
    const bool mishears = lie_ == Lie::OneIsNotTold && rank() == n_ranks() - 1 && from != rank();
    if ((lie_ == Lie::LastRowLost || mishears) && is_match) numbers.resize(numbers.size() - 6);
  }
  std::vector<Numbers> all_gather(std::span<const std::int32_t> own) override {
    std::vector<Numbers> all = exchange_.all_gather(own);
    const bool is_match = n_gathers_++ % 2 == 0;
    if (is_match && lie_ == Lie::ShortestWins)
      for (Numbers& one : all) one[0] = -one[0];
    if (!is_match && lie_ == Lie::WindowTurned) {
      Numbers ids;
      for (const Numbers& one : all) ids.insert(ids.end(), one.begin(), one.end());
      for (Numbers& one : all)
        for (std::int32_t& id : one) id = ids.back(), ids.pop_back();
    }
    return all;
  }

 private:
  Exchange& exchange_;
  Lie lie_;
  int vocab_;
  int n_gathers_ = 0;
};

/// Of some texts: those that differ from the same on one rank, in a token or in how many steps.
int n_different(Lie lie) {
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
    const Outcome single = run(*ranks.models[0], prompt, alone(job));
    const ByRanks told = tell(ranks, prompt, job, {.wrap = [lie](Exchange& exchange) {
                                return std::make_unique<Lying>(exchange, lie, 4);
                              }});
    n += told.failed || told.tokens[0] != single.tokens || told.n_steps != single.n_steps;
  }
  return n;
}

// That what holds the shipped exchange against one rank finds what is usually got wrong.
TEST(LookaheadRanks, would_not_be_what_one_rank_is_with_any_message_wrong) {
  const Deadline deadline;
  EXPECT_EQ(n_different(Lie::None), 0);
  for (const Lie lie : {Lie::ShortestWins, Lie::LastRowLost, Lie::OtherAnswer, Lie::WindowTurned,
                        Lie::OneIsNotTold})
    EXPECT_GT(n_different(lie), 0) << static_cast<int>(lie);
}

/// A text under way with a fault planted in one rank: its error, and what was told before it.
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

TEST(LookaheadRanks, a_rank_that_fails_ends_the_text_and_what_was_written_stays) {
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
  // While it reads the prompt, and with what is no Error.
  EXPECT_EQ(ended_by(2, -1, device).why, "rank 2 on a device of the test: the device is gone");
  EXPECT_EQ(ended_by(1, 3, [] { throw std::runtime_error("a fault"); }).why, "a fault");
}

TEST(LookaheadRanks, come_to_rest_where_the_text_is_let_go_of) {
  const Deadline deadline;
  for (int n_steps = 0; n_steps < 6; n_steps++) {
    auto ranks = toys(4, {.vocab = 5, .context = 2, .seed = 4});
    for (std::size_t rank = 1; rank < 4; rank++)
      ranks.watched[rank]->before = [](bool) {
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      };
    Job job;
    job.decoder = "lookahead";
    job.options = {{"ranks", "4"}};
    job.ranks = ranks.others();
    Lane lane = start(ranks.first(), {1, 2, 3, 4}, job);
    Stepper stepper(ranks.first(), nullptr);
    Lane* lanes[] = {&lane};
    for (int step = 0; step < n_steps; step++) stepper.step(lanes);
  }
}

TEST(LookaheadRanks, that_still_read_the_prompt_are_not_waited_for_when_a_person_stops) {
  const Deadline deadline;
  auto ranks = toys(2, {.vocab = 5, .context = 2, .seed = 4});
  std::atomic<bool> asked = false;
  ranks.watched[1]->before = [&](bool) {
    while (!asked) std::this_thread::yield();  // it would read for ever
  };
  LookaheadRanks shared(
      ranks.first(), {{*ranks.watched[1], ranks.at_work[1], "the test"}},
      {{1, 2, 3}, parse_options("lookahead", {{"ranks", "2"}}), {.target = ranks.first()}});
  try {
    shared.wait_until_ready([&] {
      asked = true;
      return false;
    });
    FAIL() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
}

// As lanes of a race do, whose other ranks are the same models.
TEST(LookaheadRanks, of_texts_that_take_turns_write_what_each_is_alone) {
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
              run_ar(*ranks.models[0], prompts[i], alone(jobs[i])).tokens);
  }
}

TEST(LookaheadRanks, have_a_copy_of_the_model_each_that_stays_while_they_decode) {
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
  EXPECT_EQ(store.get_ranks(models.target, 4), models.ranks) << "they are held";
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

TEST(LookaheadRanks, go_on_from_each_others_texts_under_a_scheduler) {
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

TEST(LookaheadRanks, are_refused_where_they_would_not_agree) {
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
  EXPECT_THAT(refused({{"ranks", "2"}, {"adapt", "2"}}, {}), HasSubstr("adapt"));
  EXPECT_THAT(refused({{"ranks", "0"}}, {}), HasSubstr("between 1 and 16"));
}

}  // namespace
}  // namespace engine::test

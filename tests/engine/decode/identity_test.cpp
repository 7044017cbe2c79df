// Every decoder gives the tokens of plain decoding, greedy and coupled (T1, T2, T12, T13).
#include <gtest/gtest.h>

#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

ToyShape random_shape(Dice& dice, std::uint64_t seed) {
  // Toys with a small vocabulary and context repeat themselves, so guesses are often right.
  ToyShape shape;
  shape.vocab = dice(2, 24);
  shape.context = dice(1, 3);
  shape.seed = seed;
  return shape;
}

void expect_same(const Outcome& found, const Outcome& expected, const Job& job) {
  EXPECT_EQ(found.tokens, expected.tokens) << described(job);
  EXPECT_EQ(found.stop, expected.stop) << described(job);
  if (is_textbook(job)) return;
  EXPECT_LE(found.n_steps, expected.n_steps) << described(job);  // T5
}

TEST(Identity, greedy_output_equals_autoregressive_for_random_settings) {
  int n_accepted = 0;
  for (std::uint64_t seed = 0; seed < 400; seed++) {
    Dice dice(seed);
    const ToyShape shape = random_shape(dice, seed);
    ToyModel model(shape), draft(draft_of(shape));
    Job job = random_job(dice, &draft);
    job.limits.max_tokens = dice(1, 60);
    const auto prompt = dice.text(dice(1, 20), model.vocab_size());
    const Outcome found = run(model, prompt, job);
    expect_same(found, run_ar(model, prompt, job), job);
    n_accepted += static_cast<int>(found.n_accepted);
  }
  EXPECT_GT(n_accepted, 2000) << "too few accepted guesses for a meaningful test";
}

TEST(Identity, coupled_output_equals_autoregressive_at_every_temperature) {
  for (const float temperature : {0.2f, 0.7f, 1.0f, 2.0f}) {
    for (std::uint64_t seed = 0; seed < 50; seed++) {
      Dice dice(1000 + seed);
      const ToyShape shape = random_shape(dice, seed);
      ToyModel model(shape), draft(draft_of(shape));
      Job job = random_job(dice, &draft);
      job.sampling.temperature = temperature;
      job.sampling.seed = seed * 7919 + 3;
      if (dice(0, 1)) job.sampling.top_k = dice(1, 8);
      if (dice(0, 1)) job.sampling.top_p = 0.1f * static_cast<float>(dice(3, 9));
      if (dice(0, 2) == 0) job.sampling.min_p = 0.1f;
      const auto prompt = dice.text(dice(1, 12), model.vocab_size());
      expect_same(run(model, prompt, job), run_ar(model, prompt, job), job);
    }
  }
}

TEST(Identity, holds_with_a_repetition_penalty) {
  for (std::uint64_t seed = 0; seed < 100; seed++) {
    Dice dice(2000 + seed);
    const ToyShape shape = random_shape(dice, seed);
    ToyModel model(shape), draft(draft_of(shape));
    Job job = random_job(dice, &draft);
    job.sampling.repetition_penalty = 1.2f;
    job.sampling.temperature = seed % 2 ? 0.8f : 0.0f;
    const auto prompt = dice.text(dice(1, 12), model.vocab_size());
    expect_same(run(model, prompt, job), run_ar(model, prompt, job), job);
  }
}

TEST(Identity, holds_when_the_output_ends_at_any_offset) {
  for (std::uint64_t seed = 0; seed < 12; seed++) {
    Dice dice(3000 + seed);
    const ToyShape shape{.vocab = 6, .context = 2, .seed = seed};
    ToyModel model(shape), draft(draft_of(shape));
    Job job = random_job(dice, &draft);
    const auto prompt = dice.text(dice(1, 6), model.vocab_size());
    for (int length = 1; length <= 30; length++) {
      job.limits.max_tokens = length;
      const Outcome found = run(model, prompt, job);
      expect_same(found, run_ar(model, prompt, job), job);
      EXPECT_EQ(found.tokens.size(), static_cast<std::size_t>(length));
      EXPECT_EQ(found.stop, StopReason::Length);
    }
  }
}

TEST(Identity, holds_when_the_context_ends_at_any_offset) {
  for (std::uint64_t seed = 0; seed < 12; seed++) {
    Dice dice(4000 + seed);
    // The draft's context may be shorter.
    const int draft_context = seed % 2 ? 512 : 12;
    ToyModel draft(
        draft_of({.vocab = 6, .context = 2, .max_seq_len = draft_context, .seed = seed}));
    Job job = random_job(dice, &draft);
    const auto prompt = dice.text(dice(1, 6), 6);
    for (int context = static_cast<int>(prompt.size()) + 1; context < 30; context++) {
      // The context ends once by the model's length, once by the limit. The toy model refuses rows
      // outside its context.
      ToyModel model({.vocab = 6, .context = 2, .max_seq_len = context, .seed = seed});
      const Outcome found = run(model, prompt, job);
      expect_same(found, run_ar(model, prompt, job), job);
      EXPECT_EQ(found.stop, StopReason::Context);
      EXPECT_EQ(found.tokens.size() + prompt.size(), static_cast<std::size_t>(context));
      ToyModel longer({.vocab = 6, .context = 2, .seed = seed});
      Job limited = job;
      limited.limits.max_seq_len = context;
      expect_same(run(longer, prompt, limited), found, job);
    }
  }
}

TEST(Identity, holds_with_eos_at_any_position) {
  int n_ended = 0;
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(5000 + seed);
    const ToyShape shape{.vocab = 5, .context = 3, .seed = seed};
    ToyModel model(shape), draft(draft_of(shape));
    Job job = random_job(dice, &draft);
    auto prompt = dice.text(dice(1, 10), model.vocab_size());
    for (TokenId eos = 0; eos < model.vocab_size(); eos++) {  // including the first and the last id
      job.limits.eos_ids = {eos};
      prompt[0] = eos;  // an end token in the prompt ends nothing
      const Outcome found = run(model, prompt, job);
      expect_same(found, run_ar(model, prompt, job), job);
      n_ended += found.stop == StopReason::Eos;
      const auto first = std::find(found.tokens.begin(), found.tokens.end(), eos);
      if (first != found.tokens.end()) {
        EXPECT_EQ(first + 1, found.tokens.end());
      }
      job.limits.ignore_eos = true;
      expect_same(run(model, prompt, job), run_ar(model, prompt, job), job);
      job.limits.stop_ids = {eos};
      const Outcome stopped = run(model, prompt, job);
      EXPECT_EQ(stopped.tokens, found.tokens) << described(job);
      EXPECT_NE(stopped.stop, StopReason::Eos);
      job.limits.stop_ids.clear();
      job.limits.ignore_eos = false;
    }
  }
  EXPECT_GT(n_ended, 60);
}

TEST(Identity, holds_for_a_vocabulary_of_one_and_extreme_ids) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(6000 + seed);
    ToyModel one({.vocab = 1, .seed = seed}), two({.vocab = 2, .context = 1, .seed = seed});
    Job job = random_job(dice, &one);
    job.sampling.temperature = seed % 3 ? 0 : 1;
    expect_same(run(one, {0}, job), run_ar(one, {0}, job), job);
    ToyModel two_draft(draft_of({.vocab = 2, .context = 1, .seed = seed}));
    job.draft = &two_draft;
    expect_same(run(two, {1}, job), run_ar(two, {1}, job), job);
  }
}

TEST(Identity, ignoring_the_penalty_history_is_detected) {
  // A control for the test above: verification without the row's own ancestors in the history
  // differs.
  const Sampling sampling{.repetition_penalty = 1.2f};
  const std::vector<TokenId> text{1, 2, 3};
  int n_different = 0;
  for (std::uint64_t seed = 0; seed < 100; seed++) {
    ToyModel model({.vocab = 6, .context = 1, .seed = seed});
    std::vector<TokenId> grown = text;
    grown.push_back(4);
    const auto logits = model.logits_after(grown);
    const auto stream = kernels::RandomStream::TargetGumbel;
    n_different += pick_token(logits, sampling, stream, grown).id !=
                   pick_token(logits, sampling, stream, text).id;
  }
  EXPECT_GT(n_different, 0);
}

}  // namespace
}  // namespace engine::test

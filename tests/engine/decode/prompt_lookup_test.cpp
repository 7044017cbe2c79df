#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/prompt_lookup.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

using Text = std::vector<TokenId>;

Text guess(
    const Text& text, int max_ngram, int n_tokens, LookupVariant variant, const Text& eos = {}) {
  const auto match = look_up(text, max_ngram, n_tokens, variant, eos);
  return match ? match->tokens : Text{};
}

TEST(PromptLookup, the_longest_matching_suffix_decides) {
  //               a  b  c  x  b  c  y  a  b  c
  const Text text{1, 2, 3, 8, 2, 3, 9, 1, 2, 3};
  EXPECT_EQ(guess(text, 3, 2, LookupVariant::Hf), (Text{8, 2}));
  EXPECT_EQ(guess(text, 2, 2, LookupVariant::Hf), (Text{8, 2}));
  EXPECT_EQ(guess(text, 2, 2, LookupVariant::Last), (Text{9, 1}));
  EXPECT_EQ(guess(text, 3, 2, LookupVariant::Last), (Text{8, 2}));
}

TEST(PromptLookup, a_published_guess_has_full_length) {
  const Text text{5, 1, 7, 1, 2, 3, 4, 1};
  EXPECT_EQ(guess(text, 1, 4, LookupVariant::Paper), (Text{7, 1, 2, 3}));
  EXPECT_EQ(guess(text, 1, 6, LookupVariant::Paper), (Text{7, 1, 2, 3, 4, 1}));
  EXPECT_TRUE(guess(text, 1, 7, LookupVariant::Paper).empty());
  EXPECT_EQ(guess(text, 1, 7, LookupVariant::Hf), (Text{7, 1, 2, 3, 4, 1}));
}

TEST(PromptLookup, the_suffix_does_not_match_itself) {
  EXPECT_TRUE(guess({1, 2, 3}, 3, 5, LookupVariant::Last).empty());
  EXPECT_TRUE(guess({4}, 3, 5, LookupVariant::Hf).empty());
  // An occurrence may overlap the suffix: a run of one token continues.
  EXPECT_EQ(guess({4, 4}, 3, 5, LookupVariant::Hf), (Text{4}));
  EXPECT_EQ(guess({4, 4, 4}, 2, 5, LookupVariant::Hf), (Text{4}));
}

TEST(PromptLookup, the_last_match_extends_past_the_end_of_the_sequence) {
  EXPECT_EQ(guess({4, 4, 4}, 2, 5, LookupVariant::Last), (Text{4, 4, 4, 4, 4}));
  EXPECT_EQ(guess({1, 2, 1, 2}, 2, 5, LookupVariant::Last), (Text{1, 2, 1, 2, 1}));
  EXPECT_EQ(guess({9, 1, 2, 3, 9}, 1, 7, LookupVariant::Last), (Text{1, 2, 3, 9, 1, 2, 3}));
}

TEST(PromptLookup, a_guess_ends_before_eos) {
  const Text text{1, 5, 0, 6, 1};
  EXPECT_EQ(guess(text, 1, 4, LookupVariant::Hf, {0}), (Text{5}));
  // If nothing is left of a match, the next occurrence or a shorter suffix is used.
  EXPECT_EQ(guess({1, 0, 1, 7, 1}, 1, 4, LookupVariant::Hf, {0}), (Text{7, 1}));
}

// A row of a step attends to the whole context, so it costs more in a longer one.
TEST(PromptLookup, auto_guesses_less_in_a_long_context) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  StepControl control(CostModel([](const StepWork& work) {
    return 10 + 0.05 * (work.row_positions - work.positions);  // of the first row: free
  }));
  Job job;
  job.decoder = "prompt-lookup";
  job.limits.max_tokens = 450;
  job.control = &control;
  int n_short = 0, n_long = 0, position = 0;  // rows of the longest step
  for (const int n : run(model, {1}, job).emitted_per_step) {
    if (position < 100) n_short = std::max(n_short, n);
    if (position > 350) n_long = std::max(n_long, n);
    position += n;
  }
  EXPECT_GT(n_short, 4);
  EXPECT_LE(n_long, 2) << "plain steps and probes";
}

// T16.
TEST(PromptLookup, without_a_match_it_is_plain_decoding) {
  ToyModel model({.vocab = 1000, .context = 40, .seed = 4});
  Job job;
  job.decoder = "prompt-lookup";
  job.limits.max_tokens = 20;
  const Outcome found = run(model, {1, 2}, job);
  const Outcome ar = run_ar(model, {1, 2}, job);
  ASSERT_EQ(found.tokens, ar.tokens);
  EXPECT_EQ(found.n_steps, 20);
  EXPECT_EQ(found.metrics.at("lookup_matches"), 0);
  EXPECT_EQ(found.metrics.at("rows"), 20);
}

TEST(PromptLookup, repeating_text_is_emitted_many_tokens_at_a_time) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  Job job;
  job.decoder = "prompt-lookup";
  job.limits.max_tokens = 110;
  const Outcome outcome = run(model, {1}, job);
  EXPECT_LT(outcome.n_steps, 30);
  for (const int n : outcome.emitted_per_step) EXPECT_LE(n, 33);
}

TEST(PromptLookup, chosen_numbers_of_tokens_change_no_token) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    const double each = 0.5 * static_cast<double>(seed % 5);
    StepControl control(CostModel([each](int rows) { return 10 + each * rows; }));
    Job job;
    job.decoder = "prompt-lookup";
    job.control = &control;
    job.limits.max_tokens = 100;
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    EXPECT_EQ(run(model, {1, 2}, job).tokens, run_ar(model, {1, 2}, job).tokens) << seed;
  }
}

// Matches of one token in random text: the guesses after them are wrong.
TEST(PromptLookup, guesses_nothing_where_guesses_do_not_pay) {
  ToyModel model({.vocab = 40, .context = 30, .seed = 4});
  StepControl control(CostModel([](int rows) { return 10 + 2.0 * rows; }));
  Job job;
  job.decoder = "prompt-lookup";
  job.control = &control;
  job.limits.max_tokens = 300;
  const Outcome outcome = run(model, {1, 2}, job);
  EXPECT_GE(outcome.counts.at("plain_steps"), 0.9 * outcome.n_steps);
  EXPECT_LE(outcome.metrics.at("rows"), 1.1 * outcome.n_steps);
  EXPECT_GT(outcome.metrics.at("lookup_matches"), 200);
}

TEST(PromptLookup, a_given_number_of_tokens_holds) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});
  StepControl steep(CostModel([](int rows) { return 10.0 * rows; }));
  Job job;
  job.decoder = "prompt-lookup";
  job.options = {{"n_tokens", "4"}};
  job.control = &steep;
  job.limits.max_tokens = 60;
  const Outcome outcome = run(model, {1}, job);
  EXPECT_LE(outcome.n_steps, 25);
  EXPECT_FALSE(outcome.counts.contains("sized_steps"));
}

}  // namespace
}  // namespace engine::test

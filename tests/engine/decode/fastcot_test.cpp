#include <algorithm>

#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/fastcot.h"
#include "engine/decode/registry.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

Job fastcot(int window, OptionValues more = {}) {
  Job job;
  job.decoder = "fastcot";
  job.options = std::move(more);
  job.options["window"] = std::to_string(window);
  return job;
}

std::vector<BlockRefined> windows_of(const Outcome& outcome) {
  std::vector<BlockRefined> windows;
  for (const Event& event : outcome.events) {
    if (const auto* refined = std::get_if<BlockRefined>(&event)) windows.push_back(*refined);
  }
  return windows;
}

TEST(FastCot, without_skip_every_step_emits_one_token) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    const Job job = fastcot(7, {{"skip", "false"}});
    const Outcome found = run(model, {1, 2}, job);
    EXPECT_EQ(found.tokens, run_ar(model, {1, 2}, job).tokens);
    EXPECT_EQ(found.n_steps, static_cast<int>(found.tokens.size()));
    EXPECT_EQ(found.metrics.at("skipped"), 0);
  }
}

TEST(FastCot, skip_saves_the_skipped_steps) {
  double n_skipped = 0;
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    const Outcome found = run(model, {1, 2}, fastcot(7));
    EXPECT_EQ(found.n_steps + found.metrics.at("skipped"), found.tokens.size());
    n_skipped += found.metrics.at("skipped");
  }
  EXPECT_GT(n_skipped, 50);
}

// T11: 149 windows and 735 slots, as table 3 of the paper implies, and the counts for its stated
// window of 10.
TEST(FastCot, denominators_are_the_papers_for_150_tokens) {
  for (const auto& [window, n_slots] : {std::pair{5, 735}, std::pair{10, 1445}}) {
    ToyModel model({.vocab = 12, .context = 3, .seed = 4});
    Job job = fastcot(window, {{"skip", "false"}});
    job.limits.max_tokens = 150;
    const Outcome found = run(model, {3, 1, 4}, job);
    ASSERT_EQ(found.tokens.size(), 150u);
    EXPECT_EQ(found.metrics.at("windows"), 149);
    EXPECT_EQ(found.metrics.at("window_slots"), n_slots);
  }
}

TEST(FastCot, hits_are_counted_as_in_the_paper) {
  const std::vector<TokenId> text{1, 2, 3, 4, 5};
  const std::vector<GuessedWindow> windows{
      {1,
       {2, 9,
        2}},  // region 2 3 4: only the first position matches; two guesses occur in the region
      {3, {5, 4, 4, 4}},  // region 4 5, clipped: no position matches; both tokens occur
      {5, {1, 1}},        // past the end of the output
      {0, {}},
  };
  const WindowHits hits = count_hits(windows, text);
  EXPECT_EQ(hits.n_windows, 2);
  EXPECT_EQ(hits.n_slots, 5);
  EXPECT_EQ(hits.n_first, 1);
  EXPECT_EQ(hits.n_token, 1);
  EXPECT_EQ(hits.n_guess_in_text, 2 + 2);
  EXPECT_EQ(hits.n_text_in_guess, 1 + 2);
}

TEST(FastCot, hits_satisfy_the_papers_identities) {
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = dice(2, 9), .context = dice(1, 3), .seed = seed});
    Job job = fastcot(dice(1, 9), {{"skip", seed % 2 ? "true" : "false"}});
    job.sampling.temperature = seed % 3 ? 0 : 0.8f;
    const Outcome found = run(model, dice.text(3, model.vocab_size()), job);
    const auto& m = found.metrics;
    EXPECT_GE(m.at("token_hits"), m.at("first_hits"));
    // A skipped token is a hit, except in the first step, whose window is filler.
    EXPECT_GE(m.at("token_hits"), m.at("skipped") - (found.emitted_per_step[0] - 1));
    EXPECT_GE(m.at("guesses_in_text"), m.at("token_hits"));
    EXPECT_GE(m.at("text_in_guesses"), m.at("token_hits"));
    EXPECT_LE(m.at("token_hits"), m.at("window_slots"));
  }
}

TEST(FastCot, first_hits_count_steps_that_emit_several_tokens) {
  std::ptrdiff_t n_more = 0;
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = dice(2, 9), .context = dice(1, 3), .seed = seed});
    Job job = fastcot(dice(1, 9));
    job.sampling.temperature = seed % 3 ? 0 : 0.8f;
    const Outcome found = run(model, dice.text(3, model.vocab_size()), job);
    // The first window is filler. A last step with room for one token emits one token whether or
    // not the guess is right.
    const auto& emitted = found.emitted_per_step;
    const auto steps =
        std::count_if(emitted.begin() + 1, emitted.end(), [](int n) { return n > 1; });
    const auto hits = static_cast<std::ptrdiff_t>(found.metrics.at("first_hits"));
    EXPECT_GE(hits, steps) << described(job);
    EXPECT_LE(hits, steps + (emitted.back() == 1)) << described(job);
    n_more += steps;
  }
  EXPECT_GT(n_more, 100);
}

TEST(FastCot, a_bound_ends_the_run_and_keeps_the_guesses) {
  int n_approximate = 0;
  for (std::uint64_t seed = 0; seed < 30; seed++) {
    ToyModel model({.vocab = 7, .context = 2, .seed = seed});
    const Outcome ar = run_ar(model, {1, 2}, fastcot(6));
    for (int bound = 1; bound <= 12; bound++) {
      const Job job = fastcot(6, {{"stop", "bound"}, {"bound", std::to_string(bound)}});
      const Outcome found = run(model, {1, 2}, job);
      if (found.stop == StopReason::Length) continue;
      EXPECT_EQ(found.stop, StopReason::Bound);
      EXPECT_EQ(found.n_steps, bound);
      EXPECT_TRUE(std::equal(found.tokens.begin(), found.tokens.end(), ar.tokens.begin()));
      // The guesses of the last forward without the fillers after them.
      EXPECT_EQ(found.approximate.size(),
                7u - static_cast<std::size_t>(found.emitted_per_step.back()));
      const std::vector<TokenId> shown = windows_of(found).back().tokens;
      EXPECT_TRUE(
          std::equal(found.approximate.begin(), found.approximate.end(), shown.begin() + 1));
      n_approximate += static_cast<int>(found.approximate.size());
    }
  }
  EXPECT_GT(n_approximate, 100);
}

TEST(FastCot, a_run_that_ends_by_eos_has_no_approximate_tokens) {
  ToyModel model({.vocab = 7, .context = 2, .seed = 3});
  EXPECT_TRUE(run(model, {1}, fastcot(6)).approximate.empty());
  Job job = fastcot(6, {{"stop", "bound"}, {"bound", "5"}});
  const Outcome ar = run_ar(model, {1}, job);
  job.limits.eos_ids = {ar.tokens[0]};
  const Outcome found = run(model, {1}, job);
  EXPECT_EQ(found.stop, StopReason::Eos);
  EXPECT_TRUE(found.approximate.empty());
}

TEST(FastCot, a_chosen_window_changes_no_token) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    StepControl control(
        CostModel([seed](int rows) { return 10 + 0.1 * static_cast<double>(seed) * rows; }));
    Job job = fastcot(0, {});
    job.options.erase("window");
    job.control = &control;
    job.limits.max_tokens = 90;
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    EXPECT_EQ(run(model, {1, 2}, job).tokens, run_ar(model, {1, 2}, job).tokens);
  }
}

// The approximate tokens of an early stop must not depend on measured times.
TEST(FastCot, the_window_of_an_early_stop_is_fixed) {
  EXPECT_TRUE(parse_options("fastcot", {})->chooses_sizes());
  EXPECT_FALSE(parse_options("fastcot", {{"stop", "bound"}})->chooses_sizes());
  EXPECT_FALSE(parse_options("fastcot", {{"window", "3"}})->chooses_sizes());
  ToyModel model({.vocab = 6});
  Job job = fastcot(0, {{"stop", "bound"}, {"bound", "4"}});
  job.options.erase("window");
  const Outcome outcome = run(model, {1}, job);
  for (const Event& event : outcome.events)
    if (const auto* drafted = std::get_if<Drafted>(&event)) {
      EXPECT_EQ(drafted->tree.n_rows(), 11);
    }
}

TEST(FastCot, a_window_never_exceeds_the_remaining_tokens) {
  ToyModel model({.vocab = 7, .context = 2, .seed = 5});
  for (int length = 1; length < 12; length++) {
    Job job = fastcot(40);
    job.limits.max_tokens = length;
    const Outcome found = run(model, {1}, job);
    int left = length;
    std::size_t step = 0;
    for (const Event& event : found.events) {
      const auto* begun = std::get_if<StepBegun>(&event);
      if (!begun) continue;
      EXPECT_LE(begun->n_rows, left);
      left -= found.emitted_per_step[step++];
    }
    EXPECT_EQ(left, 0);
  }
}

TEST(FastCot, the_preset_has_the_published_values) {
  const OptionValues paper =
      complete_options(decoder_named("fastcot"), {{"preset", "paper"}, {"window", "4"}});
  EXPECT_EQ(paper.at("window"), "4") << "given by name";
  EXPECT_EQ(complete_options(decoder_named("fastcot"), {{"preset", "paper"}}).at("window"), "10");
  EXPECT_EQ(parse_options("fastcot", {{"preset", "paper"}})->preset_penalty(), 1.2f);
  EXPECT_FALSE(parse_options("fastcot", {})->preset_penalty());
  EXPECT_FALSE(parse_options("lookahead", {{"preset", "paper"}})->preset_penalty());
}

TEST(FastCot, probe_scores_are_relative_to_the_window_mean) {
  const std::vector<float> attention{0.1f, 0.2f, 0.3f, 0.0f};
  const std::vector<double> score = attention_score(attention);
  EXPECT_NEAR(score[0], 0.1 / 0.15, 1e-6);
  EXPECT_NEAR(score[2], 2, 1e-6);
  EXPECT_EQ(score[3], 0);
  EXPECT_EQ(attention_score(std::vector<float>{0, 0}), (std::vector<double>{1, 1}));
}

TEST(FastCot, a_probe_without_a_question_is_refused_by_name) {
  ToyModel model({.vocab = 7});
  try {
    run(model, {1}, fastcot(4, {{"stop", "probe"}}));
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("stop=probe needs the possible answers"),
              std::string::npos)
        << error.what();
  }
}

TEST(FastCot, a_model_without_attention_weights_cannot_be_probed) {
  ToyModel model({.vocab = 7});
  Job job = fastcot(4, {{"stop", "probe"}});
  job.probe = {{1, 2}, {3}};
  EXPECT_THROW(run(model, {1}, job), Error);
}

}  // namespace
}  // namespace engine::test

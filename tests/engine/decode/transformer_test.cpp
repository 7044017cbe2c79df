// Every decoder on a transformer, in every instruction set and dtype, gives the tokens of plain
// decoding and, because kernels are batch-invariant, the bits of its scores (T1, T2, T7, T9, T12;
// catalogue_test.cpp covers the bundled model).
#include <cmath>

#include <gtest/gtest.h>

#include "engine/decode/verify/sampling.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/quantised_model.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

constexpr kernels::DType kDtypes[] = {kernels::DType::F32, kernels::DType::BF16,
                                      kernels::DType::F16};

std::vector<Job> settings(LanguageModel& draft) {
  const std::vector<std::pair<const char*, OptionValues>> decoders{
      {"jacobi", {{"block", "7"}}},
      {"jacobi", {{"block", "11"}, {"refill", "slide"}}},
      {"jacobi", {{"block", "6"}, {"form", "textbook"}}},
      {"fastcot", {{"window", "7"}}},
      {"fastcot", {{"window", "4"}, {"skip", "false"}, {"filler", "prompt"}}},
      {"lookahead", {}},
      {"lookahead", {{"window", "6"}, {"ngram_size", "4"}, {"advance", "accepted"}}},
      {"lookahead", {{"preset", "paper"}, {"ngram_size", "4"}}},
      {"prompt-lookup", {}},
      {"prompt-lookup", {{"variant", "hf"}, {"n_tokens", "5"}}},
      {"recycling", {}},
      {"recycling", {{"rows", "6"}}},
      {"recycling", {{"tree", "rows16"}, {"pairs", "false"}}},
      {"suffix", {}},
      {"suffix", {{"n_tokens", "12"}, {"factor", "3"}}},
      {"speculative", {}},
      {"mcsd", {{"k_config", "3,2,1,1"}}},
  };
  std::vector<Job> jobs;
  for (const auto& [name, options] : decoders) {
    for (const float temperature : {0.0f, 0.7f}) {
      Job job;
      job.decoder = name;
      job.options = options;
      job.draft = &draft;
      job.sampling.temperature = temperature;
      if (temperature > 0) {
        job.sampling.top_k = 12;
        job.sampling.top_p = 0.95f;
        job.sampling.seed = 5;
      }
      job.limits.max_tokens = 80;  // across the boundary of a page and of an attention chunk
      jobs.push_back(job);
      job.sampling.repetition_penalty = 1.2f;
      job.limits.max_tokens = 40;
      jobs.push_back(job);
    }
  }
  return jobs;
}

TEST(Transformer, every_decoder_is_bit_identical_to_plain_decoding) {
  std::int64_t n_accepted = 0;
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    for (const kernels::DType dtype : kDtypes) {
      const auto model = tiny_transformer(*device, dtype, 11);
      const auto draft = tiny_draft(*device, dtype, 11);
      const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7, 2, 20, 23, 0, 3};
      for (const Job& job : settings(*draft)) {
        const Outcome found = run(*model, prompt, job);
        const Outcome ar = run_ar(*model, prompt, job);
        const std::string what =
            std::string(ops->name) + " " + kernels::name_of(dtype) + " " + described(job);
        ASSERT_EQ(found.tokens, ar.tokens) << what;
        ASSERT_EQ(scores_of(found), scores_of(ar)) << what;
        if (!is_textbook(job)) {
          EXPECT_LE(found.n_steps, ar.n_steps) << what;
        }
        n_accepted += found.n_accepted;
      }
    }
  }
  EXPECT_GT(n_accepted, 1000) << "too few accepted guesses for a meaningful test";
}

/// Compares settings on a quantised model with plain decoding, in every instruction set.
/// @param n_accepted  accepted guesses are added to it
/// @param stride      1: all settings; 7: every seventh
void expect_identical(const ModelFiles& files,
                      const ModelFiles& draft_files,
                      const LoadOptions& options,
                      std::int64_t& n_accepted,
                      std::size_t stride = 1) {
  const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7, 2, 20, 23, 0, 3};
  for (const kernels::Ops* ops : kernels::all_cpu_ops()) {
    const auto device = kernels::open_cpu(2, *ops);
    const auto model = Model::load(*device, files, options);
    const auto draft = Model::load(*device, draft_files, options);
    ASSERT_EQ(model->cache_type(), options.cache.value_or(options.dtype));
    const std::vector<Job> jobs = settings(*draft);
    for (std::size_t i = 0; i < jobs.size(); i += stride) {
      const Outcome found = run(*model, prompt, jobs[i]), ar = run_ar(*model, prompt, jobs[i]);
      const std::string what =
          std::string(ops->name) + " " + files.stored_type + " " + described(jobs[i]);
      ASSERT_EQ(found.tokens, ar.tokens) << what;
      ASSERT_EQ(scores_of(found), scores_of(ar)) << what;
      n_accepted += found.n_accepted;
    }
  }
}

// Matrices of all types with blocks of 32, fused from equal and from different types.
TEST(Transformer, every_decoder_is_bit_identical_with_quantised_weights) {
  ModelConfig config = tiny_config();
  config.hidden_dim = 64;
  ModelConfig small = config;
  small.n_layers = 1;
  std::int64_t n_accepted = 0;
  for (const auto& types : {std::vector{GgmlType::Q4_0},
                            {GgmlType::Q8_0},
                            {GgmlType::Q4_1, GgmlType::Q5_1, GgmlType::IQ4_NL, GgmlType::Q5_0}})
    expect_identical(quantised_model(config, types, 7), quantised_model(small, types, 7),
                     {.dtype = kernels::DType::F16, .as_stored = true}, n_accepted);
  EXPECT_GT(n_accepted, 1000) << "too few accepted guesses for a meaningful test";
}

// Blocks of 256 weights. The model is larger, so fewer settings run.
TEST(Transformer, decoders_are_bit_identical_with_blocks_of_256_weights) {
  ModelConfig config = tiny_config();
  config.dim = config.hidden_dim = 256;
  config.n_heads = 8;
  config.n_kv_heads = 8;
  config.head_dim = 32;
  config.max_seq_len = 40;
  ModelConfig small = config;
  small.n_layers = 1;
  std::int64_t n_accepted = 0;
  for (const auto& types : {std::vector{GgmlType::Q4_K}, {GgmlType::Q6_K, GgmlType::Q5_K}})
    expect_identical(quantised_model(config, types, 7), quantised_model(small, types, 7),
                     {.dtype = kernels::DType::F16, .as_stored = true}, n_accepted, 7);
  EXPECT_GT(n_accepted, 0) << "too few accepted guesses for a meaningful test";
}

TEST(Transformer, every_decoder_is_bit_identical_with_a_q8_0_cache) {
  ModelConfig config = tiny_config();
  config.hidden_dim = 64;
  config.head_dim = 32;
  ModelConfig small = config;
  small.n_layers = 1;
  std::int64_t n_accepted = 0;
  const std::vector types{GgmlType::Q4_0};
  expect_identical(quantised_model(config, types, 7), quantised_model(small, types, 7),
                   {.dtype = kernels::DType::F16, .cache = kernels::DType::Q8_0, .as_stored = true},
                   n_accepted);
  EXPECT_GT(n_accepted, 300) << "too few accepted guesses for a meaningful test";
}

// Rope frequencies that depend on the length: prompts below, at and beyond the original 40 tokens.
TEST(Transformer, decoders_agree_with_length_dependent_rope) {
  const auto device = kernels::open_cpu(2);
  ModelConfig dynamic = tiny_config();
  dynamic.rope = {.type = RopeConfig::Type::Dynamic, .factor = 4, .original_max_seq_len = 40};
  ModelConfig longrope = tiny_config();
  longrope.rope = {.type = RopeConfig::Type::Longrope, .factor = 4, .original_max_seq_len = 40};
  longrope.rope.short_factor = {1, 1.1, 1.2, 1.3};
  longrope.rope.long_factor = {1, 2, 3, 4};
  for (const ModelConfig& config : {dynamic, longrope}) {
    const auto model = tiny_transformer(*device, kernels::DType::F32, 11, config);
    ModelConfig small = config;
    small.n_layers = 1;
    const auto draft = tiny_transformer(*device, kernels::DType::F32, 11, small);
    Dice dice(2);
    for (const int n_prompt : {11, 39, 41, 70}) {
      const auto prompt = dice.text(n_prompt, 24);
      for (const Job& job : settings(*draft)) {
        const Outcome found = run(*model, prompt, job);
        const Outcome ar = run_ar(*model, prompt, job);
        ASSERT_EQ(found.tokens, ar.tokens) << n_prompt << " " << described(job);
        ASSERT_EQ(scores_of(found), scores_of(ar)) << n_prompt << " " << described(job);
      }
    }
  }
}

TEST(Transformer, decoders_agree_on_other_prompts_and_weights) {
  const auto device = kernels::open_cpu(2);
  for (std::uint64_t seed = 0; seed < 12; seed++) {
    const auto model = tiny_transformer(*device, kDtypes[seed % 3], seed);
    const auto draft = tiny_draft(*device, kDtypes[seed % 3], seed);
    Dice dice(seed);
    for (int i = 0; i < 4; i++) {
      Job job = random_job(dice, draft.get());
      job.sampling.temperature = i % 2 ? 1.0f : 0.0f;
      job.sampling.seed = seed;
      job.limits.max_tokens = 60;
      job.limits.eos_ids = {static_cast<TokenId>(dice(0, 23))};
      const auto prompt = dice.text(dice(1, 90), 24);
      const Outcome found = run(*model, prompt, job);
      const Outcome ar = run_ar(*model, prompt, job);
      EXPECT_EQ(found.tokens, ar.tokens) << described(job);
      EXPECT_EQ(found.stop, ar.stop) << described(job);
      EXPECT_EQ(scores_of(found), scores_of(ar)) << described(job);
    }
  }
}

TEST(Transformer, the_cache_equals_a_fresh_prefill_after_every_step) {
  const auto device = kernels::open_cpu(2);
  for (const kernels::DType dtype : kDtypes) {
    const auto model = tiny_transformer(*device, dtype, 4);
    const auto draft = tiny_draft(*device, dtype, 4);
    for (const char* name : {"jacobi", "fastcot", "lookahead", "prompt-lookup", "suffix",
                             "recycling", "speculative", "mcsd"}) {
      Job job;
      job.decoder = name;
      job.draft = draft.get();
      job.limits.max_tokens = 70;
      Lane lane = start(*model, {1, 2, 3, 1, 2, 3, 1}, job);
      Lane* lanes[] = {&lane};
      Stepper stepper(*model, nullptr);
      while (!lane.sequence.finished()) {
        stepper.step(lanes);
        const auto tokens = lane.sequence.tokens();
        Sequence fresh({tokens.begin(), tokens.end()}, model->make_cache());
        prefill(*model, fresh, 32);
        ASSERT_EQ(fresh.cache().length(), lane.sequence.cache().length());
        std::vector<float> k, v, fresh_k, fresh_v;
        for (int layer = 0; layer < 2; layer++) {
          model->read_cache(lane.sequence.cache(), layer, k, v);
          model->read_cache(fresh.cache(), layer, fresh_k, fresh_v);
          ASSERT_EQ(k, fresh_k) << name;
          ASSERT_EQ(v, fresh_v) << name;
        }
      }
    }
  }
}

TEST(Transformer, decodes_to_the_last_position_of_the_context) {
  const auto device = kernels::open_cpu(2);
  ModelConfig config = tiny_config();
  config.max_seq_len = 40;
  const auto model = tiny_transformer(*device, kernels::DType::F32, 3, config);
  const auto draft = tiny_draft(*device, kernels::DType::F32, 3);
  for (Job job : settings(*draft)) {
    job.limits.max_tokens = 100;
    const Outcome found = run(*model, {1, 2, 3}, job);
    EXPECT_EQ(found.stop, StopReason::Context);
    EXPECT_EQ(found.tokens.size(), 37u);
    EXPECT_EQ(found.tokens, run_ar(*model, {1, 2, 3}, job).tokens) << described(job);
  }
}

TEST(Transformer, lanes_in_one_forward_decode_as_alone) {
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 8);
  std::vector<Lane> lanes;
  std::vector<Outcome> alone;
  const auto draft = tiny_draft(*device, kernels::DType::BF16, 8);
  const std::vector<Job> jobs = settings(*draft);
  for (std::size_t i = 0; i < jobs.size(); i += 3) {
    Dice dice(i);
    const auto prompt = dice.text(dice(1, 40), 24);
    alone.push_back(run(*model, prompt, jobs[i]));
    lanes.push_back(start(*model, prompt, jobs[i], static_cast<RunId>(i + 1)));
  }
  Stepper stepper(*model, nullptr);
  for (std::vector<Lane*> left;; left.clear()) {
    for (Lane& lane : lanes) {
      if (!lane.sequence.finished()) left.push_back(&lane);
    }
    if (left.empty()) break;
    stepper.step(left);
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const auto generated = lanes[i].sequence.generated();
    EXPECT_EQ(std::vector(generated.begin(), generated.end()), alone[i].tokens);
  }
}

TEST(Transformer, the_hidden_state_after_a_prompt_equals_a_steps) {
  for (const int n_threads : {1, 2}) {
    const auto device = kernels::open_cpu(n_threads);
    for (const kernels::DType dtype : kDtypes) {
      const auto model = tiny_transformer(*device, dtype, 11);
      for (const int n_prompt : {2, 3, 8, 20}) {
        const auto prompt = Dice(7).text(n_prompt, 24);
        Sequence before(prompt, model->make_cache());
        before = before.shortened(prompt.size() - 1);
        prefill(*model, before, 64);
        TokenTree tree;  // the last prompt token with guesses after it
        tree.add(before.last(), -1, RowTag{});
        tree.add(3, 0, RowTag{});
        tree.add(5, 0, RowTag{});
        const BatchItem item{
            .cache = &before.cache(), .tree = &tree, .prefix = before.cached_tokens()};
        std::vector<float> expected =
            model->forward(std::span(&item, 1), {.hidden = true}).front().hidden;
        expected.resize(expected.size() / 3);
        before.cache().commit({});
        for (const int max_rows : {1, 2, 7, 64}) {
          Sequence read(prompt, model->make_cache());
          EXPECT_TRUE(read.prompt_state().empty());
          prefill(*model, read, max_rows, {}, /*with_state=*/true);
          const auto state = read.prompt_state();
          EXPECT_EQ(std::vector(state.begin(), state.end()), expected)
              << kernels::name_of(dtype) << " " << n_prompt << " by " << max_rows;
          Sequence plain(prompt, model->make_cache());
          prefill(*model, plain, max_rows);
          EXPECT_TRUE(plain.prompt_state().empty());
          std::vector<float> k, v, plain_k, plain_v;
          for (int layer = 0; layer < model->config().n_layers; layer++) {
            model->read_cache(read.cache(), layer, k, v);
            model->read_cache(plain.cache(), layer, plain_k, plain_v);
            EXPECT_EQ(k, plain_k);
            EXPECT_EQ(v, plain_v);
          }
        }
      }
    }
  }
}

TEST(Transformer, a_sequence_keeps_the_hidden_state_after_its_prompt) {
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::BF16, 11);
  Sequence read({3, 7, 1, 9}, model->make_cache());
  prefill(*model, read, 2, {}, /*with_state=*/true);
  const auto copied = [](const Sequence& of) {
    return std::vector<float>(of.prompt_state().begin(), of.prompt_state().end());
  };
  const std::vector<float> state = copied(read);
  EXPECT_EQ(state.size(), static_cast<std::size_t>(model->config().dim));
  EXPECT_EQ(copied(read.fork()), state);
  EXPECT_EQ(copied(read.restarted()), state);
  EXPECT_EQ(copied(read.shortened(4)), state);
  EXPECT_TRUE(copied(read.shortened(3)).empty()) << "the position was truncated";
  prefill(*model, read, 2);  // nothing is prefilled
  EXPECT_EQ(copied(read), state);
  const std::vector<TokenId> more{4, 5, 6};
  Sequence longer = read.restarted(more);
  prefill(*model, longer, 2);
  EXPECT_TRUE(copied(longer).empty()) << "the position is not prefilled yet";
  Sequence stopped = read.restarted(more);
  const auto stop = [](int done, int) { return done < 5; };
  EXPECT_THROW(prefill(*model, stopped, 2, stop, /*with_state=*/true), Error);
  EXPECT_TRUE(copied(stopped).empty()) << "the prompt is not complete";
  TokenTree tree;
  tree.add(read.last(), -1, RowTag{});
  const BatchItem item{.cache = &read.cache(), .tree = &tree, .prefix = read.cached_tokens()};
  model->forward(std::span(&item, 1), {});
  read.commit({.path = {0}, .emitted = {8}}, StopReason::None);
  EXPECT_TRUE(copied(read).empty()) << "the position precedes a step";
}

TEST(Transformer, scaled_models_give_the_same_output_with_every_decoder) {
  const auto device = kernels::open_cpu(2);
  for (const kernels::DType dtype : kDtypes) {
    const auto model = tiny_transformer(*device, dtype, 11);
    const auto scaled =
        tiny_transformer(*device, dtype, 11, tiny_config(), {.width = 4, .depth = 2});
    const auto draft = tiny_draft(*device, dtype, 11);  // unscaled
    for (Job job : settings(*draft)) {
      job.limits.max_tokens = 24;
      const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7};
      EXPECT_EQ(run(*scaled, prompt, job).tokens, run_ar(*model, prompt, job).tokens)
          << kernels::name_of(dtype) << " " << described(job);
    }
  }
}

TEST(Transformer, rejection_sampling_keeps_the_target_distribution) {
  // The first token of 1500 seeds; chi-square is bounded by its mean plus five standard deviations.
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 2);
  const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7, 1, 3};
  Job job;
  job.decoder = "lookahead";
  job.options = {{"ngram_size", "2"}, {"window", "1"}};
  job.sampling = {.temperature = 1, .top_k = 6, .mode = Sampling::Mode::Rejection};
  Sequence sequence(prompt, model->make_cache());
  prefill(*model, sequence);
  TokenTree tree;
  tree.add(prompt.back(), -1, RowTag{});
  BatchItem item{.cache = &sequence.cache(), .tree = &tree, .prefix = sequence.cached_tokens()};
  const auto out = model->forward(std::span(&item, 1), {.logits = true, .hidden = false});
  const auto distribution = token_distribution(out[0].logits_of(0), job.sampling, prompt);
  constexpr int kRuns = 1500;
  job.limits.max_tokens = 2;  // guesses are verified only if a second token is allowed
  std::vector<int> count(24);
  for (int i = 0; i < kRuns; i++) {
    job.sampling.seed = static_cast<std::uint64_t>(i);
    count[static_cast<std::size_t>(run(*model, prompt, job).tokens[0])]++;
  }
  double chi_square = 0;
  int n_cells = 0;
  for (std::size_t t = 0; t < distribution.size(); t++) {
    const double expected = distribution[t] * kRuns;
    if (distribution[t] == 0) {
      EXPECT_EQ(count[t], 0);
      continue;
    }
    chi_square += (count[t] - expected) * (count[t] - expected) / expected;
    n_cells++;
  }
  const double freedom = n_cells - 1;
  EXPECT_EQ(n_cells, 6);
  EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom));
}

}  // namespace
}  // namespace engine::test

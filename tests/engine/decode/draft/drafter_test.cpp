// The draft model's cache on a transformer: after forks, growth and truncation it equals a fresh
// prefill bit for bit (T7).
#include <cmath>

#include <gtest/gtest.h>

#include "engine/decode/draft/draft_verify.h"
#include "engine/decode/draft/drafter.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

TEST(Drafter, the_cache_equals_a_fresh_prefill_after_every_step) {
  const auto device = kernels::open_cpu(2);
  for (const kernels::DType dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    const auto model = tiny_transformer(*device, dtype, 11);
    const auto draft = tiny_draft(*device, dtype, 11);
    for (const char* k_config : {"1,1,1,1", "3,2,2"}) {
      for (const Sampling& sampling :
           {Sampling{}, Sampling{.temperature = 0.8f},
            Sampling{.temperature = 0.8f, .mode = Sampling::Mode::Rejection}}) {
        Job job;
        job.decoder = "mcsd";
        job.options = {{"k_config", k_config}};
        job.draft = draft.get();
        job.sampling = sampling;
        job.limits.max_tokens = 90;  // across the end of a page
        Lane lane = start(*model, {3, 7, 1, 9, 3, 7, 2, 20, 23, 0, 3}, job);
        Lane* lanes[] = {&lane};
        Stepper stepper(*model, nullptr);
        auto& decoder = dynamic_cast<DraftVerifyDecoder&>(*lane.decoder);
        while (!lane.sequence.finished()) {
          stepper.step(lanes);
          const SequenceCache& cache = *decoder.drafter().cache();
          const auto n = static_cast<std::size_t>(cache.length());
          const auto text = lane.sequence.tokens();
          ASSERT_LT(n, text.size());
          if (!lane.sequence.finished()) {
            ASSERT_GE(n + 2, text.size());  // the draft's cache lacks one or two tokens
          }
          Sequence fresh({text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n) + 1},
                         draft->make_cache());
          prefill(*draft, fresh, 64);
          std::vector<float> k, v, fresh_k, fresh_v;
          draft->read_cache(cache, 0, k, v);
          draft->read_cache(fresh.cache(), 0, fresh_k, fresh_v);
          ASSERT_EQ(k, fresh_k) << k_config;
          ASSERT_EQ(v, fresh_v) << k_config;
        }
      }
    }
    EXPECT_EQ(draft->cache_bytes(), 0) << "rejected branches are freed";
  }
}

// Recomputes the target's distribution after each row of the tree.
std::vector<std::vector<double>> distributions_of(LanguageModel& model,
                                                  const std::vector<TokenId>& text,
                                                  const TokenTree& tree,
                                                  Sampling sampling) {
  if (sampling.greedy()) sampling.temperature = 1;
  Sequence sequence(text, model.make_cache());
  prefill(model, sequence);
  BatchItem item{.cache = &sequence.cache(), .tree = &tree, .prefix = sequence.cached_tokens()};
  const auto out = model.forward(std::span(&item, 1), {.logits = true});
  std::vector<std::vector<double>> distributions;
  for (int row = 0; row < tree.n_rows(); row++)
    distributions.push_back(token_distribution(out[0].logits_of(row), sampling, text));
  return distributions;
}

TEST(Drafter, a_step_reports_target_probabilities_of_drafted_tokens) {
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  const auto draft = tiny_draft(*device, kernels::DType::F32, 11);
  for (const float temperature : {0.0f, 0.7f}) {
    Job job;
    job.decoder = "mcsd";
    job.options = {{"k_config", "3,2"}};
    job.draft = draft.get();
    job.sampling.temperature = temperature;
    job.limits.max_tokens = 30;
    std::vector<TokenId> text{3, 7, 1, 9, 3, 7, 2, 20, 23, 0, 3};
    std::vector<std::vector<double>> distributions;
    TokenTree tree;
    int n_told = 0;
    for (const Event& event : run(*model, text, job).events) {
      if (const auto* drafted = std::get_if<Drafted>(&event)) {
        tree = drafted->tree;
        distributions = distributions_of(*model, text, tree, job.sampling);
      }
      if (const auto* v = std::get_if<Verified>(&event)) {
        ASSERT_EQ(v->p.size(), tree.token.size());
        EXPECT_EQ(v->p[0], -1) << "the bonus token was not proposed";
        for (std::size_t r = 1; r < v->p.size(); r++, n_told++) {
          const auto& distribution = distributions[static_cast<std::size_t>(tree.parent[r])];
          EXPECT_NEAR(v->p[r], distribution[static_cast<std::size_t>(tree.token[r])], 1e-4);
        }
      }
      if (const auto* c = std::get_if<Committed>(&event))
        text.insert(text.end(), c->tokens.begin(), c->tokens.end());
    }
    EXPECT_GT(n_told, 50);
  }
}

TEST(Drafter, filtered_probabilities_are_not_reported) {
  const auto device = kernels::open_cpu(1);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 11);
  const auto draft = tiny_draft(*device, kernels::DType::F32, 11);
  for (const Sampling& sampling :
       {Sampling{.temperature = 1, .top_k = 4}, Sampling{.repetition_penalty = 1.2f}}) {
    Job job;
    job.decoder = "speculative";
    job.draft = draft.get();
    job.sampling = sampling;
    job.limits.max_tokens = 8;
    for (const Event& event : run(*model, {3, 7, 1, 9}, job).events) {
      const auto* v = std::get_if<Verified>(&event);
      if (!v) continue;
      for (const float p : v->p) EXPECT_EQ(p, -1);
    }
  }
}

TEST(Drafter, rejection_sampling_keeps_the_target_distribution) {
  // The first token of 1500 seeds; chi-square is bounded by its mean plus five standard deviations.
  const auto device = kernels::open_cpu(2);
  const auto model = tiny_transformer(*device, kernels::DType::F32, 2);
  const auto draft = tiny_draft(*device, kernels::DType::F32, 2);
  const std::vector<TokenId> prompt{3, 7, 1, 9, 3, 7, 1, 3};
  Sequence sequence(prompt, model->make_cache());
  prefill(*model, sequence);
  TokenTree tree;
  tree.add(prompt.back(), -1, RowTag{});
  BatchItem item{.cache = &sequence.cache(), .tree = &tree, .prefix = sequence.cached_tokens()};
  const auto out = model->forward(std::span(&item, 1), {.logits = true, .hidden = false});
  for (const char* rule : {"without", "kseq"}) {
    Job job;
    job.decoder = "mcsd";
    job.options = {{"k_config", "2,1"}, {"rule", rule}};
    job.draft = draft.get();
    job.sampling = {.temperature = 1, .top_k = 6, .mode = Sampling::Mode::Rejection};
    job.limits.max_tokens = 2;
    const auto distribution = token_distribution(out[0].logits_of(0), job.sampling, prompt);
    constexpr int kRuns = 1500;
    std::vector<int> count(24);
    for (int i = 0; i < kRuns; i++) {
      job.sampling.seed = static_cast<std::uint64_t>(i);
      count[static_cast<std::size_t>(run(*model, prompt, job).tokens[0])]++;
    }
    double chi_square = 0;
    for (std::size_t t = 0; t < distribution.size(); t++) {
      if (distribution[t] == 0) {
        EXPECT_EQ(count[t], 0);
        continue;
      }
      const double difference = count[t] - distribution[t] * kRuns;
      chi_square += difference * difference / (distribution[t] * kRuns);
    }
    EXPECT_LT(chi_square, 5 + 5 * std::sqrt(2 * 5.0)) << rule;
  }
}

}  // namespace
}  // namespace engine::test

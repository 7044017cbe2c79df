// The draft model's cache on a real transformer: forked, grown, cut back, and always the bits of a
// fresh prefill (T7).
#include "engine/decode/drafter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/decode/draft_verify.h"
#include "tests/engine/decode/run.h"
#include "tests/engine/decode/tiny_transformer.h"

namespace engine::test {
namespace {

TEST(Drafter, its_cache_after_every_step_is_a_fresh_prefill_of_the_text) {
  const auto device = kernels::open_cpu(2);
  for (const kernels::DType dtype : {kernels::DType::F32, kernels::DType::BF16}) {
    const auto model = tiny_transformer(*device, dtype, 11);
    const auto draft = tiny_draft(*device, dtype, 11);
    for (const char* k_config : {"1,1,1,1", "3,2,2"}) {
      for (const float temperature : {0.0f, 0.8f}) {
        Job job;
        job.decoder = "mcsd";
        job.options = {{"k_config", k_config}};
        job.draft = draft.get();
        job.sampling.temperature = temperature;
        job.limits.max_tokens = 90;  // over the end of a page
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
            ASSERT_GE(n + 2, text.size());  // one token is missing, or two
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
    EXPECT_EQ(draft->cache_bytes(), 0) << "branches that were not taken are let go";
  }
}

TEST(Drafter, rejection_sampling_on_a_transformer_follows_the_law) {
  // The first token of 1500 seeds; chi-square bounded by its mean and five standard deviations.
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
    const auto law = token_law(out[0].logits_of(0), job.sampling, prompt);
    constexpr int kRuns = 1500;
    std::vector<int> count(24);
    for (int i = 0; i < kRuns; i++) {
      job.sampling.seed = static_cast<std::uint64_t>(i);
      count[static_cast<std::size_t>(run(*model, prompt, job).tokens[0])]++;
    }
    double chi_square = 0;
    for (std::size_t t = 0; t < law.size(); t++) {
      if (law[t] == 0) {
        EXPECT_EQ(count[t], 0);
        continue;
      }
      const double difference = count[t] - law[t] * kRuns;
      chi_square += difference * difference / (law[t] * kRuns);
    }
    EXPECT_LT(chi_square, 5 + 5 * std::sqrt(2 * 5.0)) << rule;
  }
}

}  // namespace
}  // namespace engine::test

// What a model is said to need, and who is refused.
#include <gtest/gtest.h>

#include "engine/model/heads_files.h"
#include "engine/model/model_files.h"
#include "engine/schedule/memory_plan.h"
#include "engine/types.h"

namespace engine {
namespace {

using kernels::DType;

ModelConfig shape() {
  ModelConfig config;
  config.dim = 64;
  config.hidden_dim = 96;
  config.n_layers = 3;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 128;
  config.max_seq_len = 512;
  config.tied_embeddings = true;
  return config;
}

TEST(MemoryPlan, weights_are_the_parameters_in_their_type) {
  const ModelConfig config = shape();
  EXPECT_EQ(memory_plan(config, DType::BF16).weights, 2.0 * config.n_params());
  EXPECT_EQ(memory_plan(config, DType::F32).weights, 4.0 * config.n_params());
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 2 * 16 * 3);
  EXPECT_GT(memory_plan(config, DType::BF16).workspace, 2.0 * 2 * 96 * 64);
}

TEST(MemoryPlan, chimeras_cache_holds_a_state_a_token_and_its_k_gram_where_that_is_seen) {
  HeadsConfig config;
  config.n_heads = 2;
  config.dim = 64;
  config.vocab_size = 128;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 0) << "Medusa's have none";
  config.kind = HeadsKind::Chimera;
  config.hidden_dim = 96;
  config.n_attention_heads = 4;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 2 * 64);
  config.sees_committed_grams = false;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 64);
}

TEST(MemoryPlan, the_largest_scale_overflows_nothing) {
  ModelConfig config = shape();
  config.dim = config.hidden_dim = 1 << 24;
  config.n_layers = 4096 * 1024;
  const MemoryPlan plan = memory_plan(config, DType::F32);
  EXPECT_GT(plan.weights, 1e21);
  EXPECT_THROW(refuse_what_does_not_fit("m", {1024, 1024}, plan, INT64_MAX), Error);
}

TEST(MemoryPlan, CF17_what_fits_passes_and_what_does_not_is_refused_with_both_sizes) {
  const MemoryPlan plan{.weights = 3e9, .workspace = 1e9, .cache_per_token = 2e4};
  EXPECT_NO_THROW(refuse_what_does_not_fit("big", {4, 2}, plan, 4'000'000'000));
  try {
    refuse_what_does_not_fit("big", {4, 2}, plan, 3'999'999'999);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    const std::string said = error.what();
    for (const char* part : {"big at --scale 4x2", "4.0 GB of memory are needed", "3.0 GB weights",
                             "1.0 GB workspace", "4.0 GB are available"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  try {
    refuse_what_does_not_fit("big", {}, plan, 1);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("--scale"), std::string::npos) << error.what();
  }
}

TEST(MemoryPlan, this_machine_has_memory) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
}

}  // namespace
}  // namespace engine

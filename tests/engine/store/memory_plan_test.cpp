// Estimates of the memory that a model needs, and refusals of models that do not fit.
#include <limits>

#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/store/memory_plan.h"
#include "kernels/device.h"
#include "tests/support/refusal.h"

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

TEST(MemoryPlan, weights_are_parameters_times_dtype_size) {
  const ModelConfig config = shape();
  EXPECT_EQ(memory_plan(config, DType::BF16).weights, 2.0 * config.n_params());
  EXPECT_EQ(memory_plan(config, DType::F32).weights, 4.0 * config.n_params());
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 2 * 16 * 3);
  EXPECT_GT(memory_plan(config, DType::BF16).workspace, 2.0 * 2 * 96 * 64);
}

TEST(MemoryPlan, counts_norms_of_heads_and_fused_matrices) {
  ModelConfig config = shape(), plain = shape();
  config.fused_projections = true;
  EXPECT_EQ(memory_plan(config, DType::F32).weights, 4.0 * plain.n_params());
  config.qk_norm = config.post_norms = true;
  EXPECT_EQ(memory_plan(config, DType::F32).weights,
            4.0 * (static_cast<double>(plain.n_params()) + 3 * (2 * 16 + 2 * 64)));
}

TEST(MemoryPlan, chimeras_cache_is_planned_per_token) {
  HeadsConfig config;
  config.n_heads = 2;
  config.dim = 64;
  config.vocab_size = 128;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 0) << "Medusa heads have no cache";
  config.kind = HeadsKind::Chimera;
  config.hidden_dim = 96;
  config.n_attention_heads = 4;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 2 * 64);
  config.sees_committed_grams = false;
  EXPECT_EQ(memory_plan(config, DType::BF16).cache_per_token, 2 * 2 * 64);
}

TEST(MemoryPlan, heads_by_the_first_layer_include_that_layer) {
  ModelConfig target = shape();
  target.tied_embeddings = false;
  HeadsConfig config;
  config.kind = HeadsKind::Chimera;
  config.n_heads = 2;
  config.dim = 64;
  config.vocab_size = 128;
  config.hidden_dim = 384;  // unlike the target's
  config.n_attention_heads = 4;
  config.gram = 1;
  const auto device = kernels::open_cpu(1);
  EXPECT_EQ(memory_plan(config, target, DType::BF16, *device).weights,
            memory_plan(config, DType::BF16).weights);
  config.by_first_layer = true;
  const MemoryPlan plan = memory_plan(config, target, DType::BF16, *device);
  const double block = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 96 * 64;
  const double layer = block + 128 * 64 + 3 * 64;  // with embedding and norms
  EXPECT_EQ(plan.weights, 2 * (static_cast<double>(config.n_params()) + layer));
  EXPECT_EQ(plan.cache_per_token, 2 * (2 * 2 * 64 + 2 * 32)) << "of the block and of the layer";
}

TEST(MemoryPlan, chimeras_k_gram_table_is_planned_if_it_is_kept) {
  HeadsConfig config;
  config.n_heads = 2;
  config.dim = 64;
  config.hidden_dim = 96;
  config.n_attention_heads = 4;
  const auto table = [&] {
    return memory_plan(config, DType::BF16).workspace -
           memory_plan(config, DType::BF16, /*with_table=*/false).workspace;
  };
  config.vocab_size = 128;
  EXPECT_EQ(table(), 0) << "Medusa heads have no table";
  config.kind = HeadsKind::Chimera;
  EXPECT_EQ(table(), 4.0 * 3 * 128 * 64);
  config.vocab_size = (64 << 20) / (4 * 4 * 64);
  config.gram = 4;
  EXPECT_EQ(table(), 64 << 20);
  config.vocab_size++;
  EXPECT_EQ(table(), 0) << "the matrix is used directly";
  config.dim = 1 << 24;
  config.vocab_size = std::numeric_limits<int>::max();
  EXPECT_EQ(table(), 0) << "no overflow";
}

TEST(MemoryPlan, prompt_rows_are_bounded_by_the_context) {
  ModelConfig config = shape();
  const auto workspace = [&](int max_seq_len, int block) {
    config.max_seq_len = max_seq_len;
    return gpu_memory_plan(config, DType::BF16, kernels::cpu_ops(), block).workspace;
  };
  for (const int block : {0, 256}) {
    // A prompt takes four blocks at a time if the context has as many, else fewer, else it is
    // prefilled as steps.
    EXPECT_EQ(workspace(1025, block), workspace(1 << 20, block));
    EXPECT_LT(workspace(200, block), workspace(257, block));
    EXPECT_EQ(workspace(20, block), workspace(128, block)) << "a step has 128 rows in both cases";
  }
  EXPECT_EQ(workspace(257, 0), workspace(1025, 0));
  EXPECT_LT(workspace(513, 256), workspace(1024, 256));
  EXPECT_LT(workspace(1024, 256), workspace(1025, 256)) << "three blocks, and four";
  EXPECT_EQ(workspace(256, 256), workspace(256, 0)) << "no block at all";
  const auto on_cpu = [&](int max_seq_len) {
    config.max_seq_len = max_seq_len;
    return memory_plan(config, DType::BF16).workspace;
  };
  EXPECT_EQ(on_cpu(257), on_cpu(4096));
  EXPECT_LT(on_cpu(200), on_cpu(257));
  EXPECT_EQ(on_cpu(2), on_cpu(128));
}

TEST(MemoryPlan, the_largest_scale_does_not_overflow) {
  ModelConfig config = shape();
  config.dim = config.hidden_dim = 1 << 24;
  config.n_layers = 4096 * 1024;
  const MemoryPlan plan = memory_plan(config, DType::F32);
  EXPECT_GT(plan.weights, 1e21);
  EXPECT_THROW(check_memory("m", {1024, 1024}, plan, INT64_MAX), Error);
}

// CF17.
TEST(MemoryPlan, a_plan_that_does_not_fit_is_refused_with_both_sizes) {
  const MemoryPlan plan{.weights = 3e9, .workspace = 1e9, .cache_per_token = 2e4};
  EXPECT_NO_THROW(check_memory("big", {4, 2}, plan, 4'000'000'000));
  try {
    check_memory("big", {4, 2}, plan, 3'999'999'999);
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    const std::string message = error.what();
    for (const char* part : {"big at --scale 4x2", "4.0 GB of memory are needed", "3.0 GB weights",
                             "1.0 GB workspace", "4.0 GB are available"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  try {
    check_memory("big", {}, plan, 1);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("--scale"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("--dtype"), std::string::npos) << error.what();
  }
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const std::string text = kernels::test::refusal(
        [&] { check_memory("m", {}, memory_plan(shape(), dtype), 1); }, ErrorCode::Resources);
    EXPECT_EQ(text.find("--dtype bf16") != std::string::npos, dtype == DType::F32) << text;
  }
}

TEST(MemoryPlan, memory_of_this_machine_is_known) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
}

}  // namespace
}  // namespace engine

// Quantised weights computed as stored: the products are those of the dequantised weights, within the error of
// activations of 8 bits, for every type alone and for different types in one fused matrix.
#include <cmath>

#include <gtest/gtest.h>

#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/model/model.h"
#include "engine/store/memory_plan.h"
#include "tests/support/models/quantised_model.h"
#include "tests/support/models/random_models.h"

namespace engine::test {
namespace {

ModelConfig wide_config() {
  ModelConfig config;
  config.dim = 256;
  config.hidden_dim = 256;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 64;
  config.vocab_size = 90;
  config.max_seq_len = 64;
  return config;
}

std::vector<float> logits_of(Model& model, std::span<const TokenId> tokens) {
  const auto cache = model.make_cache();
  const TokenTree tree = chain_tree(tokens);
  const std::vector<BatchItem> items = {{.cache = cache.get(), .tree = &tree}};
  return model.forward(items, {.logits = true})[0].logits;
}

std::string names(const std::vector<GgmlType>& types) {
  std::string all;
  for (const GgmlType type : types) all += std::string(name_of(type)) + " ";
  return all;
}

// The error is relative to the spread of the logits. Rounding activations to 8 bits adds 0.65 % of noise to a product
// (a step is 1/127 of the largest of 32). Nine products follow each other here, which makes 2 %, and attention and gates
// may amplify it.
TEST(Quantised, logits_are_those_of_dequantised_weights) {
  const auto device = kernels::open_cpu(2);
  std::vector<std::vector<GgmlType>> cases;
  for (const GgmlType type : quantised_types()) cases.push_back({type});
  cases.push_back({GgmlType::Q4_K, GgmlType::Q6_K, GgmlType::Q5_0});
  cases.push_back({GgmlType::Q8_0, GgmlType::Q4_1});
  const std::vector<TokenId> tokens = random_tokens(9, 90, 3);
  for (const auto& types : cases) {
    const ModelFiles files = quantised_model(wide_config(), types, 5);
    const auto exact = Model::load(*device, files, {.dtype = kernels::DType::F32});
    const auto stored =
        Model::load(*device, files, {.dtype = kernels::DType::F32, .as_stored = true});
    EXPECT_TRUE(kernels::is_quantised(stored->matrix_type())) << names(types);
    EXPECT_EQ(stored->weight_type(), files.stored_type);
    EXPECT_LT(stored->weight_bytes(), exact->weight_bytes()) << names(types);
    const std::vector<float> expected = logits_of(*exact, tokens),
                             found = logits_of(*stored, tokens);
    ASSERT_EQ(found.size(), expected.size());
    double error = 0, spread = 0;
    for (std::size_t i = 0; i < found.size(); i++) {
      error += std::pow(found[i] - expected[i], 2);
      spread += std::pow(expected[i], 2);
    }
    EXPECT_LT(std::sqrt(error / spread), 0.06) << names(types);
    EXPECT_GT(error, 0) << names(types) << ": the weights were dequantised";
  }
}

TEST(Quantised, unpacked_blocks_have_the_dequantised_values) {
  for (const GgmlType type : quantised_types()) {
    const std::string blocks =
        random_blocks(type, 512 / static_cast<std::size_t>(info_of(type).block_size), 9);
    std::vector<float> expected(512);
    dequantise(type, blocks, expected.data());
    const QuantisedTensor found = unpack(type, blocks, {2, 256});
    ASSERT_EQ(found.q.size(), 512u) << name_of(type);
    for (std::size_t i = 0; i < 512; i++) {
      const std::size_t group = i / static_cast<std::size_t>(found.group);
      const float product = found.scale[group] * static_cast<float>(found.q[i]);
      ASSERT_EQ(found.minimum.empty() ? product : product + found.minimum[group], expected[i])
          << name_of(type) << " " << i;
    }
  }
}

TEST(Quantised, the_memory_plan_covers_the_packed_weights) {
  const auto device = kernels::open_cpu(1);
  const ModelFiles files = quantised_model(wide_config(), {GgmlType::Q4_0}, 5);
  const auto model = Model::load(*device, files, {.dtype = kernels::DType::F16, .as_stored = true});
  const MemoryPlan plan = memory_plan_as_stored(files, device->ops());
  EXPECT_GE(plan.weights, static_cast<double>(model->weight_bytes()));
  EXPECT_LT(plan.weights, memory_plan(files.config, kernels::DType::F16).weights);
}

}  // namespace
}  // namespace engine::test

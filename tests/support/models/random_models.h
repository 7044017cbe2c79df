// Small random models in memory for the tests of the forward pass. Their shapes cover every feature
// of the model family, alone and combined.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/model/model.h"

namespace engine::test {

/// Tensors in vectors; tests may change them before a model is loaded.
class MemoryTensors final : public TensorSource {
 public:
  struct Entry {
    std::vector<std::int64_t> shape;
    std::vector<float> data;
  };
  std::map<std::string, Entry> entries;

  bool has(const std::string& name) const override { return entries.count(name) > 0; }
  Tensor read(const std::string& name) const override;
  std::vector<std::string> names() const override;
  std::string path() const override { return "memory"; }
};

/// Scales to test. ThreadSanitizer omits 16x1, which takes ten minutes there and runs the same
/// code.
inline std::vector<ModelScale> test_scales() {
  std::vector<ModelScale> scales{{4, 1}, {4, 2}};
#if !defined(__SANITIZE_THREAD__)
  scales.push_back({16, 1});
#endif
  return scales;
}

struct TestModel {
  std::string name;
  ModelConfig config;
  std::shared_ptr<MemoryTensors> tensors;

  ModelFiles files(std::shared_ptr<const Tokenizer> tokenizer = nullptr) const {
    return {.path = "memory",
            .name = name,
            .config = config,
            .tensors = tensors,
            .tokenizer = std::move(tokenizer)};
  }
};

/// The shape: dim 40, 3 layers, 4 heads of 10, vocabulary 101. No size is a multiple of a vector
/// width.
ModelConfig odd_config();
/// Random weights, large enough that logits spread over several units and no two models agree.
TestModel random_model(std::string name, const ModelConfig& config, std::uint64_t seed);
/// One model per feature, and one with nearly all features.
std::vector<TestModel> models_of_every_kind();
/// Adds Granite's multipliers of embeddings, scores, residuals and logits.
ModelConfig with_multipliers(ModelConfig config);
/// Adds the features of Gemma 2 and 3: norm offsets, norms of heads and after blocks, GELU, softcaps, and local layers with
/// their own rotation.
ModelConfig with_post_norms(ModelConfig config);

std::vector<TokenId> random_tokens(int n, int vocab_size, std::uint64_t seed);
/// A forest of n rows; each row's parent is a random earlier row or the prefix.
TokenTree random_tree(int n, int vocab_size, std::uint64_t seed);
TokenTree chain_tree(std::span<const TokenId> tokens);

/// Logits of every position in double precision, by plain loops over the whole sequence: the
/// oracle.
/// @return [n][vocab_size]
std::vector<std::vector<double>> reference_logits(const TestModel& model,
                                                  std::span<const TokenId> tokens);

}  // namespace engine::test

// Draft heads of a few thousand weights and texts for them, for the tests of their passes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/train/heads/pass.h"
#include "kernels/dtype.h"
#include "tests/engine/train/gradient_check.h"

namespace engine::test {

inline constexpr int kDim = 32, kVocab = 64;

inline HeadsConfig small_heads(HeadsKind kind) {
  HeadsConfig c;
  c.kind = kind;
  c.n_heads = 3;
  c.dim = kDim;
  c.vocab_size = kVocab;
  c.hidden_dim = 64;
  c.n_attention_heads = 2;
  return c;
}

inline std::vector<Bf16> as_bf16(const std::vector<float>& values) {
  std::vector<Bf16> rounded;
  for (const float value : values) rounded.push_back({kernels::bf16_from_f32(value)});
  return rounded;
}

/// A text and its hidden states.
struct Text {
  std::vector<TokenId> tokens;
  std::vector<Bf16> hidden;
  int n_prompt;
  HeadsText read() const { return {tokens, hidden, n_prompt}; }
};

inline Text random_text(int n_tokens, int n_prompt, std::uint64_t seed) {
  Text text{{}, as_bf16(spread(static_cast<std::size_t>((n_tokens - 1) * kDim), seed)), n_prompt};
  for (int i = 0; i < n_tokens; i++)
    text.tokens.push_back(
        static_cast<TokenId>((seed * 13 + static_cast<std::uint64_t>(i) * 29) % kVocab));
  return text;
}

/// Heads under training.
template <typename T>
struct Heads {
  HeadsConfig config;
  HeadsLayout layout{config};
  std::vector<float> embedding = spread(kVocab * kDim, 5);
  std::vector<float> parameters;
  std::unique_ptr<LinearMath<T>> math;
  std::unique_ptr<PackedHeads<T>> weights;
  std::unique_ptr<HeadsPass<T>> pass;

  Heads(const HeadsConfig& c,
        std::unique_ptr<LinearMath<T>> own,
        std::unique_ptr<LinearMath<T>> packing)
      : config(c), math(std::move(packing)) {
    parameters = initial_heads(c, spread(kVocab * kDim, 6), embedding, 0.3f, 3);
    weights = std::make_unique<PackedHeads<T>>(config, layout, parameters, *math);
    pass = make_heads_pass<T>(config, embedding, std::move(own), train_table(), 256);
  }
  /// Layers that change nothing yet would hide what flows through them; of logits far apart the
  /// rounding would hide the differences.
  void disturb() {
    const auto noise = spread(parameters.size(), 11);
    for (std::size_t i = 0; i < noise.size(); i++)
      parameters[i] = 0.5f * (parameters[i] + 0.1f * noise[i]);
    repack();
  }
  void repack() {
    for (int i = 0; i < weights->n_matrices(); i++) weights->repack(i, *math);
  }
  double loss(const std::vector<HeadsText>& texts,
              const HeadsLoss& counts,
              std::vector<float>& gradient) {
    repack();
    gradient.assign(parameters.size(), 0.0f);
    HeadsSums sums(config.n_heads);
    pass->forward_backward(parameters, *weights, texts, counts, gradient.data(), sums);
    double loss = counts.of_feature * sums.feature;
    for (std::size_t k = 0; k < sums.loss.size(); k++) loss += counts.of_head[k] * sums.loss[k];
    return loss;
  }
};

inline Heads<float> heads_in_f32(const HeadsConfig& config) {
  return {config, linear_math_f32(), linear_math_f32()};
}

}  // namespace engine::test

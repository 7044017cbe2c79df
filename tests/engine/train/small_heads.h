// Draft heads of a few thousand weights and texts for them, for the tests of their passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/train/heads/pass.h"
#include "kernels/dtype.h"
#include "tests/engine/train/cpu_learner.h"
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

/// Heads that end in the target's output matrix.
/// @param every_second  they rank every second token; false: all
inline HeadsConfig small_heads_on_target(HeadsKind kind, bool every_second) {
  HeadsConfig c = small_heads(kind);
  c.target_output = true;
  if (kind == HeadsKind::Chimera) c.head_hidden_dim = 16;
  for (TokenId token = 1; every_second && token < kVocab; token += 2)
    c.output_tokens.push_back(token);
  return c;
}

inline std::vector<Bf16> as_bf16(const std::vector<float>& values) {
  std::vector<Bf16> rounded;
  for (const float value : values) rounded.push_back({kernels::bf16_from_f32(value)});
  return rounded;
}

/// Texts with the rows of their tokens in the output matrix of heads.
class RankedTexts {
 public:
  RankedTexts(const std::vector<HeadsText>& texts, const HeadsConfig& config) : texts_(texts) {
    for (const HeadsText& text : texts) rows_.push_back(output_rows_of(text.tokens, config));
    for (std::size_t i = 0; i < texts.size(); i++) texts_[i].rows = rows_[i];
  }
  const std::vector<HeadsText>& read() const { return texts_; }

 private:
  std::vector<HeadsText> texts_;
  std::vector<std::vector<std::int32_t>> rows_;
};

/// The rows of the output matrix of the target with these weights.
inline std::vector<float> output_of_target(const HeadsConfig& c) {
  const std::vector<float> all = spread(kVocab * kDim, 6);
  if (c.output_tokens.empty()) return all;
  std::vector<float> rows;
  for (const TokenId token : c.output_tokens)
    rows.insert(rows.end(), all.begin() + token * kDim, all.begin() + (token + 1) * kDim);
  return rows;
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

/// Heads in training on the CPU, in f32.
struct Heads {
  HeadsConfig config;
  HeadsLayout layout{config};
  std::vector<float> embedding = spread(kVocab * kDim, 5), output = output_of_target(config);
  std::vector<float> parameters;
  CpuDevice cpu{Compute::F32};
  std::unique_ptr<PackedWeights> packed, of_target;
  std::unique_ptr<HeadsPass> pass;

  /// @param first_layer  of the target, for heads whose tokens it encodes
  explicit Heads(const HeadsConfig& c, FirstLayer* first_layer = nullptr) : config(c) {
    parameters = initial_heads(c, output, embedding, 0.3f, 3);
    packed = pack_weights(parameters.data(), HeadsMatrices(c, layout).all(), Compute::F32);
    of_target = pack_weights(output.data(), {HeadsMatrices(c, layout).of_target}, Compute::F32);
    pass = make_heads_pass(cpu.on(), config,
                           {embedding.data(), {output.data(), of_target.get()}, first_layer}, 256);
  }
  /// The weights as they are now.
  kernels::TrainWeights weights() const {
    for (int i = 0; i < packed->n_matrices(); i++) packed->repack(i);
    return {parameters.data(), packed.get()};
  }
  /// Perturbs the weights: residual layers of zeros would hide the gradients through them, and large
  /// logits would hide differences by rounding.
  void disturb() {
    const auto noise = spread(parameters.size(), 11);
    for (std::size_t i = 0; i < noise.size(); i++)
      parameters[i] = 0.5f * (parameters[i] + 0.1f * noise[i]);
  }
  double loss(const std::vector<HeadsText>& texts,
              const HeadsLoss& counts,
              std::vector<float>& gradient) {
    const HeadsSums sums = sums_of(texts, counts, gradient);
    double loss = counts.of_feature * sums.feature;
    for (std::size_t k = 0; k < sums.loss.size(); k++) loss += counts.of_head[k] * sums.loss[k];
    return loss;
  }
  /// One pass: its gradient and its sums.
  HeadsSums sums_of(const std::vector<HeadsText>& given,
                    const HeadsLoss& counts,
                    std::vector<float>& gradient) {
    const RankedTexts ranked(given, config);
    const std::vector<HeadsText>& texts = ranked.read();
    gradient.assign(parameters.size(), 0.0f);
    HeadsSums sums(config.n_heads);
    int n_rows = 0;
    for (const HeadsText& text : texts) n_rows += text.n_places(0);
    n_rows = cpu.on().padded(n_rows);
    const auto n = static_cast<std::size_t>(config.n_heads * n_rows);
    std::vector<float> losses(n), squares(n);
    pass->forward_backward(weights(), texts, counts, gradient.data(),
                           {losses.data(), squares.data(), n_rows});
    for (int head = 0; head < config.n_heads; head++) {
      const auto k = static_cast<std::size_t>(head);
      for (int row = 0; row < n_rows; row++)
        sums.loss[k] += losses[static_cast<std::size_t>(head * n_rows + row)];
      for (const HeadsText& text : texts) {
        sums.n[k] += text.n_targets(head);
        if (config.kind == HeadsKind::Chimera)
          sums.n_feature += std::int64_t{text.n_places(head)} * config.dim;
      }
    }
    for (const float square : squares) sums.feature += square;
    return sums;
  }
};

/// Compares the gradient of every weight with the derivative of the loss of three texts, one of which
/// has no place for a head; every part has a gradient.
inline void expect_gradients_of(Heads& heads, const char* what) {
  heads.disturb();
  const Text a = random_text(11, 3, 1), b = random_text(9, 5, 2), no_place = random_text(6, 5, 3);
  const std::vector<HeadsText> texts = {a.read(), no_place.read(), b.read()};
  const HeadsLoss counts{.of_head = {0.1f, 0.08f, 0.064f}, .of_feature = 0.002f};
  std::vector<float> gradient, ignored;
  heads.loss(texts, counts, gradient);
  for (const NamedPart& part : heads.layout.parts) {
    std::int64_t size = 1;
    for (const std::int64_t d : part.shape) size *= d;
    const auto begin = gradient.begin() + part.at;
    EXPECT_TRUE(std::any_of(begin, begin + size, [](float g) { return g != 0; }))
        << what << ": no gradient in " << part.name;
  }
  expect_gradient(
      heads.parameters, gradient, [&] { return heads.loss(texts, counts, ignored); }, what, 97,
      2e-3);
}

}  // namespace engine::test

// A language model small enough to enumerate: its logits are a hash of the last few tokens. Its
// cache checks that decoders use it correctly.
#pragma once

#include <memory>
#include <vector>

#include "engine/decode/step/sequence.h"
#include "engine/model/language_model.h"

namespace engine::test {

/// Stores the token of every committed position in place of keys and values.
class ToyCache : public SequenceCache {
 public:
  int length() const override { return static_cast<int>(tokens.size()); }
  void commit(std::span<const int> path) override;
  void truncate(int length) override;
  std::unique_ptr<SequenceCache> fork() const override { return std::make_unique<ToyCache>(*this); }

  std::vector<TokenId> tokens;
  TokenTree in_flight;  // rows of the last forward
};

struct ToyShape {
  int vocab = 16;
  int context = 2;   // the logits depend on this many tokens
  float spread = 4;  // logits are in [-spread / 2, spread / 2)
  int max_seq_len = 512;
  std::uint64_t seed = 1;
  /// For drafts: adds noise of this size to the logits of the same shape without blur.
  float blur = 0;
  /// For drafts: the model proposes only tokens v with bit v set; 0: all tokens.
  std::uint64_t output_mask = 0;
};
/// A draft model for a toy: the same vocabulary, often the same choice.
ToyShape draft_of(ToyShape target, float blur = 2);

class ToyModel : public LanguageModel {
 public:
  explicit ToyModel(const ToyShape& shape) : shape_(shape) {
    for (int v = 0; v < shape.vocab && shape.output_mask != 0; v++)
      if (proposes(v)) output_tokens_.push_back(v);
  }
  std::span<const TokenId> output_tokens() const override { return output_tokens_; }
  int vocab_size() const override { return shape_.vocab; }
  int max_seq_len() const override { return shape_.max_seq_len; }
  std::unique_ptr<SequenceCache> make_cache() override { return std::make_unique<ToyCache>(); }
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override;

  /// The toy's hidden state: the sequence's length and its last tokens, oldest first; -1 for
  /// missing ones.
  static constexpr std::size_t kHiddenDim = 5;
  static std::vector<float> hidden_of(std::span<const TokenId> text);
  /// Logits of the token after `text`.
  std::vector<float> logits_after(std::span<const TokenId> text) const;

  int n_forwards = 0;
  std::vector<int> n_rows;  // of each forward

 private:
  bool proposes(int v) const {
    return shape_.output_mask == 0 || (shape_.output_mask >> v & 1) != 0;
  }
  StepOutput answer(const BatchItem& item, Wants wants) const;

  ToyShape shape_;
  std::vector<TokenId> output_tokens_;
};

/// The choice of kernels::Ops::pick, in f64.
kernels::Picked pick_token(std::span<const float> logits,
                           const Sampling& sampling,
                           kernels::RandomStream stream,
                           std::span<const TokenId> history);

/// The n likeliest tokens of a distribution, taken out one after another.
RankedTokens rank_distribution(std::vector<double> distribution, int n);

}  // namespace engine::test

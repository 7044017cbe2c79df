// The embedding and the output matrix that a draft in training shares with its target, and that low-rank training leaves as they
// are. Both are frozen: they have no gradient, no moments, and are not in checkpoints.
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/checkpoint/opened_model.h"

namespace engine {

struct FrozenEmbedding;  // engine/train/core/transformer.h
class TrainableWeights;  // engine/train/core/trainable_weights.h

/// The target's matrices in f32, in the host's memory.
struct SharedEmbedding {
  std::vector<float> embedding;        // [vocab_size, dim]
  std::vector<float> output;           // [output tokens, dim]; empty: the embedding
  std::vector<TokenId> output_tokens;  // ascending; empty: all

  /// The output matrix.
  const std::vector<float>& output_rows() const { return output.empty() ? embedding : output; }
  /// Replaces tokens by their rows of the output matrix. A token without a row gets row 0 and weight 0.
  void to_rows(std::span<TokenId> targets, std::span<float> weights) const;
};

/// Decodes the target's matrices.
/// @param output_tokens  ascending; empty: all
SharedEmbedding shared_embedding(const ModelFiles& target, std::vector<TokenId> output_tokens);

/// The matrices on the device of the weights in training. @param shared  outlives the weights
FrozenEmbedding frozen_embedding(const SharedEmbedding& shared,
                                 const ModelConfig& model,
                                 TrainableWeights& weights);

}  // namespace engine

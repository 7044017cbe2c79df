#include "engine/train/draft/shared_embedding.h"

#include <utility>

#include "engine/checkpoint/shared/output_tokens.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/train/core/trainable_weights.h"
#include "engine/train/core/transformer.h"

namespace engine {

void SharedEmbedding::to_rows(std::span<TokenId> targets, std::span<float> weights) const {
  if (output_tokens.empty()) return;
  for (std::size_t i = 0; i < targets.size(); i++) {
    const auto row = output_row(output_tokens, targets[i]);
    targets[i] = row.value_or(0);
    if (!row) weights[i] = 0;
  }
}

SharedEmbedding shared_embedding(const ModelFiles& target, std::vector<TokenId> output_tokens) {
  SharedEmbedding shared;
  shared.embedding = f32_of(target.tensors->read("model.embed_tokens.weight"));
  if (!target.config.tied_embeddings || !output_tokens.empty())
    shared.output = f32_of(output_rows(target, output_tokens));
  shared.output_tokens = std::move(output_tokens);
  return shared;
}

FrozenEmbedding frozen_embedding(const SharedEmbedding& shared,
                                 const ModelConfig& model,
                                 TrainableWeights& weights) {
  return {.embedding = weights.constant(shared.embedding, "the shared embedding"),
          .output = weights.frozen(shared.output_rows(), {{0, model.n_outputs(), model.dim}})};
}

}  // namespace engine

#include "engine/train/draft/shared_embedding.h"

#include <algorithm>

namespace engine {

void SharedEmbedding::to_rows(std::span<TokenId> targets, std::span<float> weights) const {
  if (output_tokens.empty()) return;
  for (std::size_t i = 0; i < targets.size(); i++) {
    const auto at = std::ranges::lower_bound(output_tokens, targets[i]);
    const bool has_row = at != output_tokens.end() && *at == targets[i];
    targets[i] = has_row ? static_cast<TokenId>(at - output_tokens.begin()) : 0;
    if (!has_row) weights[i] = 0;
  }
}

SharedEmbedding shared_embedding(const ModelFiles& target, std::vector<TokenId> output_tokens) {
  SharedEmbedding shared;
  shared.embedding = f32_of(target.tensors->read("model.embed_tokens.weight"));
  shared.output_tokens = std::move(output_tokens);
  const bool is_tied = target.config.tied_embeddings;
  if (is_tied && shared.output_tokens.empty()) return shared;
  const std::vector<float> own =
      is_tied ? std::vector<float>() : f32_of(target.tensors->read("lm_head.weight"));
  const std::vector<float>& all = is_tied ? shared.embedding : own;
  if (shared.output_tokens.empty()) {
    shared.output = all;
    return shared;
  }
  const auto dim = static_cast<std::size_t>(target.config.dim);
  for (const TokenId token : shared.output_tokens) {
    const auto row =
        all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * dim);
    shared.output.insert(shared.output.end(), row, row + static_cast<std::ptrdiff_t>(dim));
  }
  return shared;
}

}  // namespace engine

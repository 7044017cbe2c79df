// Drafts that read the embedding and the output matrix of their target. config.json of such a draft has the member
// "shares_embedding_of", the target's name. Its weights have no embed_tokens and no lm_head. They may have the tensor
// "output_tokens", I32 [n] in ascending order: the only tokens that the draft can propose. Its output matrix then consists of
// the rows of these tokens in the target's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/checkpoint/opened_model.h"
#include "engine/checkpoint/shards.h"

namespace engine {

/// The target that a draft directory names in its config.json; nullopt: it is no such draft.
/// @throws Error(BadInput)  if config.json is no JSON
std::optional<std::string> named_target(const std::string& directory, const FileLimits& limits);
/// The target for a draft's config.json; null if the draft shares nothing.
/// @throws Error(BadInput)  if it shares an embedding and options.target is null
const ModelFiles* target_of_draft(const std::string& directory, const OpenOptions& options);

/// Completes an opened draft by its target: output tokens, special tokens, embedding and output matrix. If the target's weights
/// are quantised, the draft's matrices and its output rows are rounded to guess_type().
/// @param weights  the draft's own
/// @param draft    with config and its own tensors
/// @throws Error(BadInput)  if its width or its tokens do not fit the target
void share_embedding(const ModelFiles& target, const WeightFiles& weights, ModelFiles& draft);

/// Writes the directory of a draft that shares its target's embedding. It has no tokenizer.
/// @param config         with shares_embedding_of
/// @param output_tokens  ascending; empty: all
void write_sharing_draft(const std::string& directory,
                         const ModelConfig& config,
                         const TensorSource& tensors,
                         const std::vector<TokenId>& output_tokens,
                         kernels::DType dtype);

}  // namespace engine

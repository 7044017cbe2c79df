// The output matrix that draft heads share with their target: the rows of some tokens.
#pragma once

#include <memory>
#include <span>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/safetensors.h"

namespace engine {

/// Name of the shared output matrix, [n_outputs, dim], among the tensors of heads. Files do not
/// hold it.
inline constexpr const char* kTargetOutput = "target_output.weight";
/// Name of the I32 tensor of the tokens that heads rank, [n_outputs].
inline constexpr const char* kOutputTokens = "output_tokens";

/// Rows of a model's output matrix.
/// @param tokens  the rows; empty: all
/// @return  [n rows, dim], f32 for a quantised matrix
Tensor output_rows(const ModelFiles& model, std::span<const TokenId> tokens);

/// Adds the shared output matrix to the tensors of heads, read from the target when it is used, and
/// the tokens they rank to the stored tensors, for the hash of the weights.
std::shared_ptr<const TensorSource> with_target_output(std::shared_ptr<const TensorSource> heads,
                                                       const HeadsConfig& config,
                                                       const ModelFiles& target);

/// All tensors that loading reads: those of tensors_of() and the shared output matrix.
std::vector<TensorSpec> loaded_tensors_of(const HeadsConfig& config);
/// The tensors that distinguish heads with the same name: those of tensors_of() and the tokens that
/// they rank.
std::vector<TensorSpec> hashed_tensors_of(const HeadsConfig& config);

/// Reads a tensor of token ids, which must ascend.
/// @throws Error(BadInput)  "file: tensor: found X, expected Y"
std::vector<TokenId> read_output_tokens(const SafetensorsFile& file,
                                        const TensorEntry& entry,
                                        int vocab_size);

}  // namespace engine

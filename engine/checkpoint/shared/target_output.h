// The output matrix that draft heads share with their target: the rows of some tokens.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/checkpoint/opened_model.h"
#include "engine/checkpoint/safetensors.h"

namespace engine {

/// Name of the shared output matrix, [n_outputs, dim], among the tensors of heads. Files do not
/// hold it.
inline constexpr const char* kTargetOutput = "target_output.weight";
/// Name of the I32 tensor of the tokens that heads rank, [n_outputs].
inline constexpr const char* kOutputTokens = "output_tokens";

/// The type to which the matrices of a draft and of heads are rounded beside a quantised target: Q4_0 if the target's weights
/// have 4 bits, else Q8_0. Their time is that of reading them, and verification finds what rounding makes wrong.
kernels::DType guess_type(const ModelFiles& target);

/// Rows of a model's output matrix.
/// @param tokens  the rows; empty: all
/// @return  [n rows, dim], f32 for a quantised matrix
Tensor output_rows(const ModelFiles& model, std::span<const TokenId> tokens);

/// Adds the shared output matrix to the tensors of heads, read from the target when it is used, and
/// the tokens they rank to the stored tensors, for the hash of the weights.
/// @param tokens  as for output_rows()
std::shared_ptr<const TensorSource> with_target_output(std::shared_ptr<const TensorSource> heads,
                                                       std::span<const TokenId> tokens,
                                                       const ModelFiles& target);

/// Reads a tensor of token ids, which must ascend.
/// @throws Error(BadInput)  "file: tensor: found X, expected Y"
std::vector<TokenId> read_output_tokens(const SafetensorsFile& file,
                                        const TensorEntry& entry,
                                        int vocab_size);

}  // namespace engine

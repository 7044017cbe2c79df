// Reads the members of config.json that describe rotary position embedding and its scaling.
#pragma once

#include <string>
#include <vector>

#include "engine/base/fields.h"
#include "engine/base/limits.h"
#include "engine/checkpoint/config.h"

namespace engine {

/// Reads rope_scaling and rope_theta (transformers 4) or rope_parameters (5), of which the first
/// counts where both are there, as in transformers.
/// @param config   max_seq_len and head_dim are known; max_seq_len becomes the context that the
///                 scaling extends it to, max_position_embeddings the length that the file states
/// @param notices  receives a notice for each member without effect
/// @throws Error(BadInput)
void read_rope(const Fields& fields,
               const FileLimits& limits,
               ModelConfig& config,
               std::vector<std::string>& notices);

/// Positions that a rope scaling extends a context to:
///   linear, dynamic          max_position_embeddings * factor
///   yarn, llama3, longrope   the original length * factor, at least max_position_embeddings
/// transformers has no such bound: there any length is accepted.
double extended_context(const RopeConfig& rope, int max_position_embeddings);

}  // namespace engine

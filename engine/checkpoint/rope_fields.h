// The members of config.json that say how positions are rotated, and how far they go.
#pragma once

#include "engine/checkpoint/config_file.h"
#include "engine/base/fields.h"
#include "engine/base/limits.h"

namespace engine {

/// Reads rope_scaling and rope_theta (transformers 4) or rope_parameters (5), of which the first
/// counts where both are there, as in transformers. What is there and has no effect goes into the
/// notices.
/// @param file  config.max_seq_len and head_dim are known; max_seq_len becomes the context that the
///              scaling extends it to, max_position_embeddings keeps what was stated
/// @throws Error(BadInput)
void read_rope(const Fields& fields, const FileLimits& limits, ConfigFile& file);

/// Positions that a rope scaling extends a context to:
///   linear, dynamic          max_position_embeddings * factor
///   yarn, llama3, longrope   the original length * factor, at least max_position_embeddings
/// transformers has no such bound: there any length is accepted.
double extended_context(const RopeConfig& rope, int max_position_embeddings);

}  // namespace engine

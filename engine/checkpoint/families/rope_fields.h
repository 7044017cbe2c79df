// Reads the parameters of rotary position embedding (RoPE) from config.json.
#pragma once

#include <string>
#include <vector>

#include "engine/base/fields.h"
#include "engine/base/limits.h"
#include "engine/checkpoint/config.h"

namespace engine {

/// Reads rope_scaling and rope_theta (written by transformers 4) or rope_parameters (transformers
/// 5). If both exist, rope_scaling is used, as in transformers. Gemma 3 has a second set for local
/// layers: rope_local_base_freq, or a set for each layer type in rope_parameters.
/// @param default_theta  base if the file has none
/// @param config   model_type, max_seq_len and head_dim must be set. Receives the parameters, the
///                 extended context as max_seq_len and the file's length as max_position_embeddings
/// @param notices  receives a notice for each member that is ignored
/// @throws Error(BadInput)
void read_rope(const Fields& fields,
               const FileLimits& limits,
               double default_theta,
               ModelConfig& config,
               std::vector<std::string>& notices);

/// The context length that RoPE scaling allows:
///   linear, dynamic          max_position_embeddings * factor
///   yarn, llama3, longrope   the original length * factor, at least max_position_embeddings
/// transformers has no such limit and accepts any length.
double extended_context(const RopeConfig& rope, int max_position_embeddings);

}  // namespace engine

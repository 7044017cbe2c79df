// Values that GGUF files do not state. llama.cpp derives them from the shape; gguf_config.cpp and write_gguf_config.cpp
// do the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace engine {

/// [head_dim / 2] what Llama 3's scaling divides the frequency of each rotary pair by: 1 for short wavelengths, rope.factor
/// for long ones. The tensor rope_freqs.weight has them.
std::vector<double> llama3_divisors(const RopeConfig& rope, std::int64_t head_dim);

/// The factor of cosines and sines of longrope, if the file has none.
/// @param extension  context length divided by the original length
double longrope_attention_factor(double extension, double original_length);

/// The factor of cosines and sines of yarn with mscale `scale`. llama.cpp multiplies rope.scaling.attn_factor by that with
/// scale 1.
double yarn_attention_factor(double factor, double scale = 1);

/// query_pre_attn_scalar of Gemma 2 and 3: the size of a head; in the models with 27 billion weights dim / n_heads (Google's
/// config.py).
std::int64_t gemma_query_scalar(const std::string& model_type,
                                std::int64_t n_layers,
                                std::int64_t dim,
                                std::int64_t n_heads,
                                std::int64_t head_dim);

/// Every layer whose number, from 1, is a multiple of this is global if the file names no pattern of local layers. 0: no
/// layer is global.
std::int64_t usual_window_period(const std::string& model_type);

}  // namespace engine

// Values that GGUF files do not state. llama.cpp derives them from the shape; gguf_config.cpp and write_gguf_config.cpp
// do the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"

namespace engine {

/// The divisors that Llama 3's scaling applies to the rotary frequencies: 1 for short wavelengths,
/// rope.factor for long ones. GGUF files store them as rope_freqs.weight.
/// @return  [head_dim / 2], one for each rotary pair
std::vector<double> llama3_divisors(const RopeConfig& rope, std::int64_t head_dim);

/// The factor by which longrope multiplies cosines and sines if the file states none.
/// @param extension  context length divided by the original length
double longrope_attention_factor(double extension, double original_length);

/// The factor by which YaRN multiplies cosines and sines. llama.cpp multiplies
/// rope.scaling.attn_factor by the value for scale 1.
/// @param scale  mscale of config.json
double yarn_attention_factor(double factor, double scale = 1);

/// query_pre_attn_scalar of Gemma 2 and 3: head_dim, except in the 27B models, which have dim /
/// n_heads (Google's config.py).
std::int64_t gemma_query_scalar(const std::string& model_type,
                                std::int64_t n_layers,
                                std::int64_t dim,
                                std::int64_t n_heads,
                                std::int64_t head_dim);

/// The period of global layers if the file names no pattern: layer i (from 0) is global if i + 1 is
/// a multiple of it. 0: no layer is global.
std::int64_t usual_window_period(const std::string& model_type);

}  // namespace engine

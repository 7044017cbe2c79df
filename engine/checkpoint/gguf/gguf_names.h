// How tensors are called and laid out in GGUF files, compared with Hugging Face's model files
// (gguf-py's tensor_mapping.py; the converters of llama.cpp).
#pragma once

#include <string>

#include "engine/checkpoint/config.h"

namespace engine {

/// A tensor of a GGUF file.
struct GgufPlace {
  std::string name;  // "blk.0.attn_q.weight"
  /// Above 0: the rows are rotary pairs in another order. In each of this many heads, row 2i of
  /// the GGUF file is row i of Hugging Face's and row 2i + 1 is row i + head_dim / 2.
  int n_interleaved_heads = 0;
  float offset = 0;  // the file has each element plus this (norms of Gemma)
};

/// Where a GGUF file has the tensor that Hugging Face calls `name`.
/// @param name  one of tensors_of(config)
GgufPlace place_in_gguf(const std::string& name, const ModelConfig& config);

}  // namespace engine

// Names and layouts of tensors in GGUF files, given their names in Hugging Face's files. Sources:
// tensor_mapping.py of gguf-py; the converters of llama.cpp.
#pragma once

#include <string>

#include "engine/checkpoint/config.h"

namespace engine {

/// A tensor of a GGUF file.
struct GgufPlace {
  std::string name;  // "blk.0.attn_q.weight"
  /// Number of heads whose rotary pairs GGUF stores in another order; 0: the order is the same. In
  /// each head, rows 2i and 2i + 1 of the GGUF file are rows i and i + head_dim / 2 of Hugging
  /// Face's.
  int n_interleaved_heads = 0;
  float offset = 0;  // added to each element in the file (norms of Gemma)
};

/// Returns the GGUF name and layout of the tensor that Hugging Face calls `name`.
/// @param name  one of tensors_of(config)
GgufPlace place_in_gguf(const std::string& name, const ModelConfig& config);

}  // namespace engine

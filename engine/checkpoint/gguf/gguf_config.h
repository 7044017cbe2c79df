// The hyperparameters in the metadata of a GGUF file (llama.cpp's llama-arch.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine {

class GgufHeader;

/// Reads and validates the metadata. The tensors show which biases the model has, and whether the
/// output matrix is the embedding.
/// @param file     the first part of a model, with its embedding in one of `parts`
/// @param parts    all parts
/// @param context  maximum sequence length; 0: the length in the file
/// @throws Error(BadInput)  naming key, value and range; for an architecture that is not read
ConfigFile read_gguf_config(const GgufFile& file,
                            const std::vector<std::shared_ptr<const GgufFile>>& parts,
                            const FileLimits& limits = {},
                            int context = 0);

/// A tensor that is part of the configuration: divisors of the rotary frequencies.
struct GgufFactors {
  std::string name;  // "rope_freqs.weight"
  std::vector<float> values;
};

/// Writes the metadata that read_gguf_config() and llama.cpp read. Writes the sliding window even
/// for an architecture for which llama.cpp ignores it.
/// @param path  of the model, for messages
/// @return  tensors that the file needs in addition to the weights
/// @throws Error(BadInput)  for a model that GGUF cannot describe
std::vector<GgufFactors> write_gguf_config(const ModelConfig& config,
                                           const std::string& path,
                                           GgufHeader& header);

}  // namespace engine

// Random models with quantised matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/gguf/ggml_types.h"
#include "engine/checkpoint/opened_model.h"

namespace engine::test {

/// Every quantised type that is read.
std::vector<GgmlType> quantised_types();

/// Blocks of random integers whose scales and minima make values of about N(0, 0.1).
std::string random_blocks(GgmlType type, std::size_t n_blocks, std::uint64_t seed);

/// A random model. Matrix i, in order of names, has type i of `types`, which repeat. Their block sizes divide all
/// widths of `config`.
ModelFiles quantised_model(const ModelConfig& config,
                           const std::vector<GgmlType>& types,
                           std::uint64_t seed);

}  // namespace engine::test

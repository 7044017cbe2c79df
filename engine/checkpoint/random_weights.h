// Random weights for any list of tensors, as for a model's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// Drawn from N(0, 0.02), ones where a name ends in "norm.weight"; a value is a function of (seed,
/// name, index) alone.
std::shared_ptr<const TensorSource> random_tensors(std::vector<TensorSpec> specs,
                                                   std::uint64_t seed);

}  // namespace engine

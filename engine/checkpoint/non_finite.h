// Checks weights for NaN and infinity.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// The number of elements that are NaN or infinite.
std::int64_t count_non_finite(const Tensor& tensor);

/// Returns one message for each tensor of `specs` that has NaN or infinite elements.
std::vector<std::string> non_finite_faults(const TensorSource& tensors,
                                           std::span<const TensorSpec> specs);

}  // namespace engine

// Looking for NaN and infinity in weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// How many elements are NaN or infinite.
std::int64_t count_non_finite(const Tensor& tensor);

/// A sentence for each of these tensors that holds some.
std::vector<std::string> non_finite_faults(const TensorSource& tensors,
                                           std::span<const TensorSpec> specs);

}  // namespace engine

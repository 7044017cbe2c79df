// Looking for NaN and infinity in weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/tensor_source.h"

namespace engine {

/// How many elements are NaN or infinite.
std::int64_t count_non_finite(const Tensor& tensor);

/// A sentence for each tensor of such a model that holds some.
std::vector<std::string> non_finite_notices(const TensorSource& tensors, const ModelConfig& config);

}  // namespace engine

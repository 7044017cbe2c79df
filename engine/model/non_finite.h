// Looking for NaN and infinity in weights.
#pragma once

#include <cstdint>

#include "engine/model/tensor_source.h"

namespace engine {

/// How many elements are NaN or infinite.
std::int64_t count_non_finite(const Tensor& tensor);

}  // namespace engine

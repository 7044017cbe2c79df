// Tensors from one element type to another, through f32.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// Writes elements [first, first + n) of `tensor` to `out` as `dtype`, rounded to nearest even.
/// The same dtype is a copy: no bit changes.
void convert_elements(
    const Tensor& tensor, std::int64_t first, std::int64_t n, kernels::DType dtype, void* out);

/// All elements as f32.
std::vector<float> f32_of(const Tensor& tensor);

}  // namespace engine

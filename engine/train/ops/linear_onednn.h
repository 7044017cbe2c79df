// The products of linear_math.h by oneDNN's matmul.
#pragma once

#include <memory>

#include "engine/train/ops/linear_math.h"

namespace engine {

/// True if the processor has instructions for bf16 products.
bool onednn_has_bf16();
/// Products in f32.
std::unique_ptr<LinearMath<float>> onednn_math_f32();
/// Products in bf16.
std::unique_ptr<LinearMath<Bf16>> onednn_math_bf16();

}  // namespace engine

// The products of linear.h through oneDNN's matmul; oneDNN's own headers stay in the .cpp.
#pragma once

#include <memory>

#include "engine/train/ops/linear.h"

namespace engine {

/// Whether this processor multiplies bf16 by instructions of its own.
bool onednn_has_bf16();
std::unique_ptr<LinearMath<float>> onednn_math_f32();
std::unique_ptr<LinearMath<Bf16>> onednn_math_bf16();

}  // namespace engine

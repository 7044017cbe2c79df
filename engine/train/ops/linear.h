// The three products of a linear layer on the CPU: y = x W^T, dx = dy W, dW += dy^T x. Compute mode
// Bf16Amx uses this project's kernel, the other CPU modes use oneDNN. AMX is disabled in oneDNN,
// because version 2.6 executes an illegal AMX instruction for plain layouts.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/train/ops/linear_math.h"

namespace engine {

/// The type of activations and the library for products; the last two modes are for a GPU.
enum class Compute { F32, Bf16Amx, Bf16OneDnn, F32Cuda, Bf16Cuda };
/// "f32", "bf16-amx", "bf16-onednn", "f32-cuda" or "bf16-cuda".
const char* name_of(Compute compute);

/// Products in f32.
std::unique_ptr<LinearMath<float>> linear_math_f32();
/// Products in bf16.
/// @throws Error(Device)  for Bf16Amx on a processor without AMX
std::unique_ptr<LinearMath<Bf16>> linear_math_bf16(Compute compute);

/// The fastest CPU mode on this machine: Bf16Amx if the processor has AMX. Otherwise the first call
/// times products in bf16 and in f32 and takes the faster type: with Intel's AVX-512 BF16
/// instructions, bf16 is slower than f32.
Compute fastest_compute();

}  // namespace engine

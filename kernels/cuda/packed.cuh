// Where an element of a packed matrix lies.
#pragma once

#include <cstdint>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kChunk = 64;  // of k
constexpr int kBlockOutputs = 64, kF32Outputs = 32;

__host__ __device__ constexpr int chunks_of(int k) {
  return (k + kChunk - 1) / kChunk;
}
__host__ __device__ constexpr std::int64_t padded_to(int n, int multiple) {
  return (std::int64_t{n} + multiple - 1) / multiple * multiple;
}

/// Halves: [block of 64 outputs][chunk of 64 k][16 outputs][16 k][lane][8], the fragments of
/// multiply_tile's first operand.
__device__ inline std::int64_t place_of_half(int output, int j, int n_chunks) {
  const int row = output % 16, column = j % 16;
  const int lane = row % 8 * 4 + column % 8 / 2;
  const int element = row / 8 * 2 + column / 8 * 4 + column % 2;
  const std::int64_t chunk = std::int64_t{output / kBlockOutputs} * n_chunks + j / kChunk;
  const std::int64_t tile = (chunk * 4 + output % kBlockOutputs / 16) * 4 + j % kChunk / 16;
  return (tile * 32 + lane) * 8 + element;
}
/// f32: [block of 32 outputs][k][32].
__device__ inline std::int64_t place_of_f32(int output, int j, int k) {
  return (std::int64_t{output / kF32Outputs} * k + j) * kF32Outputs + output % kF32Outputs;
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

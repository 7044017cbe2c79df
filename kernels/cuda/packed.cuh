// The layout of packed weights.
#pragma once

#include <cstdint>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kChunk = 64;  // elements of k
constexpr int kBlockOutputs = 64, kF32Outputs = 32;
constexpr int kChunkBytes = kBlockOutputs * kChunk * 2;  // half types

__host__ __device__ constexpr int chunks_of(int k) {
  return (k + kChunk - 1) / kChunk;
}
__host__ __device__ constexpr std::int64_t padded_to(int n, int multiple) {
  return (std::int64_t{n} + multiple - 1) / multiple * multiple;
}

constexpr int kPartials = 4;  // partial sums of a product: chunk c belongs to partial sum c % 4

/// Index of a partial sum's first chunk among the n chunks of a block of outputs. Chunks are stored partial sum by
/// partial sum, so a block that computes one reads contiguous memory.
__host__ __device__ constexpr int place_of_partial(int partial, int n) {
  return partial * (n / kPartials) + (partial < n % kPartials ? partial : n % kPartials);
}
/// Index of a chunk.
__host__ __device__ constexpr int place_of_chunk(int chunk, int n) {
  return place_of_partial(chunk % kPartials, n) + chunk / kPartials;
}
/// The chunk that is stored at an index.
__host__ __device__ constexpr int chunk_at(int place, int n) {
  int partial = 0;
  while (partial + 1 < kPartials && place >= place_of_partial(partial + 1, n)) partial++;
  return (place - place_of_partial(partial, n)) * kPartials + partial;
}

/// Half types: [block of 64 outputs][chunk of 64 k, ordered by place_of_chunk][16 outputs][16 k][lane][8], the fragments of
/// multiply_tile's first operand.
__device__ inline std::int64_t place_of_half(int output, int j, int n_chunks) {
  const int row = output % 16, column = j % 16;
  const int lane = row % 8 * 4 + column % 8 / 2;
  const int element = row / 8 * 2 + column / 8 * 4 + column % 2;
  const std::int64_t chunk =
      std::int64_t{output / kBlockOutputs} * n_chunks + place_of_chunk(j / kChunk, n_chunks);
  const std::int64_t tile = (chunk * 4 + output % kBlockOutputs / 16) * 4 + j % kChunk / 16;
  return (tile * 32 + lane) * 8 + element;
}
/// f32: [block of 32 outputs][k][32].
__device__ inline std::int64_t place_of_f32(int output, int j, int k) {
  return (std::int64_t{output / kF32Outputs} * k + j) * kF32Outputs + output % kF32Outputs;
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

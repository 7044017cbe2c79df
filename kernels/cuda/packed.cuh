// Where an element of a packed matrix lies.
#pragma once

#include <cstdint>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kChunk = 64;  // of k
constexpr int kBlockOutputs = 64, kF32Outputs = 32;
constexpr int kChunkBytes = kBlockOutputs * kChunk * 2;  // of halves

__host__ __device__ constexpr int chunks_of(int k) {
  return (k + kChunk - 1) / kChunk;
}
__host__ __device__ constexpr std::int64_t padded_to(int n, int multiple) {
  return (std::int64_t{n} + multiple - 1) / multiple * multiple;
}

constexpr int kPartials = 4;  // sums that a product is cut into: chunk c is one of c % 4's

/// Where the chunks of a partial sum begin among the n of a block of outputs: sum by sum, so that
/// one that makes a sum reads memory from its first byte to its last.
__host__ __device__ constexpr int place_of_partial(int partial, int n) {
  return partial * (n / kPartials) + (partial < n % kPartials ? partial : n % kPartials);
}
__host__ __device__ constexpr int place_of_chunk(int chunk, int n) {
  return place_of_partial(chunk % kPartials, n) + chunk / kPartials;
}
/// Of a place, which chunk lies there.
__host__ __device__ constexpr int chunk_at(int place, int n) {
  int partial = 0;
  while (partial + 1 < kPartials && place >= place_of_partial(partial + 1, n)) partial++;
  return (place - place_of_partial(partial, n)) * kPartials + partial;
}

/// Halves: [block of 64 outputs][chunk of 64 k, in the order of places][16 outputs][16 k][lane][8],
/// the fragments of multiply_tile's first operand.
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

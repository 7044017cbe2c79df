// Weights that a product reads next, on their way to the GPU's cache while kernels before it run that
// leave its memory with little to do.
#pragma once

#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/packed.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kChunkBytes = kBlockOutputs * kChunk * 2;

struct Ahead {
  const unsigned char* weights;
  std::int64_t stride;  // bytes, from what one block of the product reads to what the next one does
  int n_blocks, bytes;  // of the product; bytes of each, from its first
};
constexpr int kAskWarps = 4;  // of a block that asks, each for what one block of the product reads

/// @param asking  which of the blocks that ask; less than 0: none
__device__ inline void ask_for(const Ahead& ahead, int asking) {
  const int warp = static_cast<int>(threadIdx.x) / 32, block = asking * kAskWarps + warp;
  const int from = static_cast<int>(threadIdx.x) % 32 * kChunkBytes;
  if (asking < 0 || warp >= kAskWarps || block >= ahead.n_blocks || from >= ahead.bytes) return;
  prefetch_to_cache(ahead.weights + block * ahead.stride + from, kChunkBytes);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

// Weights that a product reads next, on their way to the GPU's cache while kernels before it leave
// its memory with little to do.
#pragma once

#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/packed.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// The first chunks of each partial sum of each 64 outputs, or of all four where one block makes
/// them.
struct Ahead {
  const unsigned char* weights;
  int n_chunks;  // of k
  int n_parts;   // 1 or kPartials
  int n;         // blocks of 64 outputs by parts
  int n_asked;   // chunks of each, at most 32
};
constexpr int kAskWarps = 4;  // of a block that asks, each for the chunks of one

/// @param asking  which of the blocks that ask; less than 0: none
__device__ inline void ask_for(const Ahead& ahead, int asking) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int i = asking * kAskWarps + warp, part = i % ahead.n_parts;
  if (asking < 0 || warp >= kAskWarps || i >= ahead.n || lane >= ahead.n_asked) return;
  const int place = place_of_partial(part, ahead.n_chunks) + lane;
  if (place >= place_of_partial(part + kPartials / ahead.n_parts, ahead.n_chunks)) return;
  const std::int64_t chunk = std::int64_t{i / ahead.n_parts} * ahead.n_chunks + place;
  prefetch_to_cache(ahead.weights + chunk * kChunkBytes, kChunkBytes);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

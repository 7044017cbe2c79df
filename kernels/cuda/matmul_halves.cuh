// The matrix product of up to 16 rows in half precision, on the tensor cores. A lane loads its
// fragments of weights and rows directly to registers, four chunks before it multiplies them. A
// block may start while the previous kernel still runs (programmatic dependent launch). No kernel
// of a step writes weights, so the block loads its first weights before it waits for that kernel.
#pragma once

#include "kernels/cuda/matmul_call.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// A lane's fragments of the rows of one chunk.
template <int kRowTiles>
struct RowsOfChunk {
  unsigned of[4][kRowTiles][2];  // 16 k each
  __device__ void load(const MatmulCall& call, int chunk) {
    const auto* words = static_cast<const unsigned*>(call.rows) +
                        std::int64_t{chunk} * 8 * kRowTiles * 32 + threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < 4; tile++) {
#pragma unroll
      for (int r = 0; r < kRowTiles; r++) {
#pragma unroll
        for (int half = 0; half < 2; half++)
          of[tile][r][half] = words[((tile * 2 + half) * kRowTiles + r) * 32];
      }
    }
  }
};

// grid: (blocks of 64 outputs, 1, or kPartials for split-K); a warp computes 16 outputs
template <class Store, int kRowTiles>
__global__ void __launch_bounds__(kMatThreads) multiply_few(MatmulCall call) {
  constexpr int kAhead = 4;  // chunks that are loaded before their use
  let_next_begin();
  const Share share(call);
  Weights weights(call, share, blockIdx.x);
  Weights::OfChunk w[kAhead] = {};
#pragma unroll
  for (int i = 0; i < kAhead; i++) weights.load(w[i]);
  wait_for_earlier();
  // Rows are loaded as early as weights, because a load of rows from a busy L2 cache takes nearly
  // as long as a load of weights from memory.
  RowsOfChunk<kRowTiles> rows[kAhead];
  ChunkCursor here = {share.first, share.first}, later = here;
  const int n = share.size();
#pragma unroll
  for (int i = 0; i < kAhead; i++) {
    if (i < n) rows[i].load(call, later.chunk);
    later.advance(share.n_chunks);
  }
  Sums<kRowTiles> sums;
  for (int begin = 0; begin < n; begin += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; i++) {
      if (begin + i >= n) break;
#pragma unroll
      for (int tile = 0; tile < 4; tile++) {
        const unsigned a[4] = {w[i][tile].x, w[i][tile].y, w[i][tile].z, w[i][tile].w};
#pragma unroll
        for (int r = 0; r < kRowTiles; r++)
          multiply_tile(Store::kHalf, sums.now[r], a, rows[i].of[tile][r]);
      }
      weights.load(w[i]);
      if (begin + i + kAhead < n) rows[i].load(call, later.chunk);
      later.advance(share.n_chunks);
      const int partial = here.partial;
      here.advance(share.n_chunks);
      if (here.partial != partial) sums.end_partial();
    }
  }
  leave_sums<kRowTiles>(call, sums.before, share.first);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

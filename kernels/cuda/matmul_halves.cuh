// Products of halves by the tensor cores: weights lie in the order in which lanes read their
// fragments, and go from the GPU's memory to the registers of the lane that multiplies them, chunks
// ahead of their use. A block of few rows reads these where they lie; of more, through shared
// memory. Weights need no kernel before this one: a block that begins early has its first ones on
// the way.
#pragma once

#include "kernels/cuda/matmul_call.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// One chunk's rows as a lane multiplies them.
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

// grid: (blocks of 64 outputs, 1 or kPartials: who makes the partial sums); a warp has 16 outputs
template <class Store, int kRowTiles>
__global__ void __launch_bounds__(kMatThreads) multiply_few(MatmulCall call) {
  constexpr int kAhead = 4;  // chunks
  let_next_begin();
  const Share share(call);
  Weights weights(call, share, blockIdx.x);
  Weights::OfChunk w[kAhead] = {};
#pragma unroll
  for (int i = 0; i < kAhead; i++) weights.load(w[i]);
  wait_for_earlier();
  ChunkCursor here = {share.first, share.first};
  RowsOfChunk<kRowTiles> rows[2];
  rows[0].load(call, here.chunk < share.n_chunks ? here.chunk : 0);
  Sums<kRowTiles> sums;
  const int n = share.size();
  for (int begin = 0; begin < n; begin += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; i++) {
      if (begin + i >= n) break;
      ChunkCursor next = here;
      next.advance(share.n_chunks);
      if (begin + i + 1 < n) rows[(i + 1) % 2].load(call, next.chunk);
#pragma unroll
      for (int tile = 0; tile < 4; tile++) {
        const unsigned a[4] = {w[i][tile].x, w[i][tile].y, w[i][tile].z, w[i][tile].w};
#pragma unroll
        for (int r = 0; r < kRowTiles; r++)
          multiply_tile(Store::kHalf, sums.now[r], a, rows[i % 2].of[tile][r]);
      }
      weights.load(w[i]);
      if (next.partial != here.partial) sums.end_partial();
      here = next;
    }
  }
  leave_sums<kRowTiles, 1>(call, sums.before, share.first);
}

/// Two groups share the rows that they read.
constexpr int kManyGroups = 2;

// grid: (blocks of 128 outputs, 1 or kPartials); a warp has 16 outputs
template <class Store, int kRowTiles>
__global__ void __launch_bounds__(kManyGroups* kMatThreads) multiply_many(MatmulCall call) {
  constexpr int kAhead = kRowTiles > 8 ? 3 : 4;  // chunks, as registers have room
  let_next_begin();
  const Share share(call);
  Weights weights(call, share, blockIdx.x * kManyGroups + threadIdx.x / kMatThreads);
  Weights::OfChunk w[kAhead] = {};
#pragma unroll
  for (int i = 0; i < kAhead; i++) weights.load(w[i]);
  const int n = share.size();
  ChunkCursor here = {share.first, share.first};
  RowsInShared<kRowTiles> rows(n);
  wait_for_earlier();
  const auto rows_of_chunk = [](const MatmulCall& of, int chunk) {
    return static_cast<const unsigned char*>(of.rows) +
           std::int64_t{chunk} * kRowTiles * kRowTileBytes;
  };
  ChunkCursor later = here;
  for (int i = 0; i < rows.kStages - 1; i++) {
    rows.fetch(i, rows_of_chunk(call, later.chunk));
    later.advance(share.n_chunks);
  }
  Sums<kRowTiles> sums;
  for (int begin = 0; begin < n; begin += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; i++) {
      if (begin + i >= n) break;
      const unsigned char* stage = rows.wait(begin + i);
      rows.fetch(begin + i + rows.kStages - 1, rows_of_chunk(call, later.chunk));
      later.advance(share.n_chunks);
      unsigned a[4][4];
#pragma unroll
      for (int tile = 0; tile < 4; tile++)
        a[tile][0] = w[i][tile].x, a[tile][1] = w[i][tile].y, a[tile][2] = w[i][tile].z,
        a[tile][3] = w[i][tile].w;
      multiply_rows_begin(sums.now, a);
#pragma unroll
      for (int tile = 0; tile < 4; tile++)
        multiply_rows<kRowTiles>(Store::kHalf, sums.now, a[tile],
                                 stage + tile * kRowTiles * kRowTileBytes / 4);
      multiply_rows_end(sums.now);
      weights.load(w[i]);
      const int partial = here.partial;
      here.advance(share.n_chunks);
      if (here.partial != partial) sums.end_partial();
    }
  }
  leave_sums<kRowTiles, kManyGroups>(call, sums.before, share.first);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

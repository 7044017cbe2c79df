// The second of attention's kernels, which joins what the chunks of a row have left, where another
// file makes it on the way to what comes next: a product that rounds the rows.
#pragma once

#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kAttentionWarps = 4, kAttentionThreads = 32 * kAttentionWarps;

/// A chunk of a group of rows. Of ints alone, as the lists are.
struct ChunkItem {
  int first, end;  // of the group, among the pass's rows
  int chunk;
  int page, n_cached;  // how many of the chunk's positions lie in the page, from its first
};
/// A row of the pass.
struct ListedRow {
  int row;         // of the plan
  int first, pos;  // positions that it sees, [first, pos]
  int chain;       // where its chain would have position 0
  int chunks;      // where chunk 0 would be among all chunks of the pass
};

/// What one pass of the two kernels is told. Lists are in device memory.
struct AttentionCall {
  const char* k_pages;
  const char* v_pages;
  std::int64_t page_bytes;
  int n_kv_heads, head_dim, n_heads;
  float scale;
  int window;  // 0: none
  const float* q;
  std::int64_t q_stride;
  const void* staged_k;
  const void* staged_v;
  float* out;
  std::int64_t out_stride;
  float* partials;  // [row's chunk][n_heads][2 + head_dim]: largest score, sum of weights, values
  const int *seq, *pos, *chain_begin, *prefix_len, *page_begin, *pages, *chain;  // of the plan
  const int* rows;        // of the pass, sequence by sequence
  const int* chunk_base;  // [rows of the pass + 1]  where a row's chunks begin
  const ListedRow* listed;
  const ChunkItem* items;
};

/// Of every fourth chunk, 128 dimensions.
struct FourthsOfJoin {
  float of[kAttentionWarps][kAttentionThreads];
};

/// Joins a listed row's chunks of one head: weights relative to the largest score of all; their sum
/// by a lane's chunks in order, then a tree; values by every fourth chunk in order, then the four
/// in order. write(dimension, value) is called by one thread each. Meets the block.
template <class Write>
__device__ inline void join(const AttentionCall& call, int listed, int head, const Write& write) {
  auto& fourths = static_shared<FourthsOfJoin>();
  const int begin = call.chunk_base[listed], n = call.chunk_base[listed + 1] - begin;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t step = std::int64_t{call.n_heads} * (2 + call.head_dim);
  const float* chunks = call.partials + begin * step + std::int64_t{head} * (2 + call.head_dim);
  float top = -kInfinity, sum = 0;
  for (int c = lane; c < n; c += 32) top = Larger()(top, chunks[c * step]);
  top = over_warp(top, Larger());
  for (int c = lane; c < n; c += 32)
    sum = fmaf(chunks[c * step + 1], exp_f32(chunks[c * step] - top), sum);
  const float scale = 1.0f / over_warp(sum, Plus());
  for (int first = 0; first < call.head_dim; first += kAttentionThreads) {
    constexpr int kDims = kAttentionThreads / 32;
    float values[kDims] = {};
#pragma unroll 4
    for (int c = warp; c < n; c += kAttentionWarps) {
      const float* chunk = chunks + c * step;
      const float part = exp_f32(chunk[0] - top);
#pragma unroll
      for (int i = 0; i < kDims; i++) {
        const int d = first + lane + 32 * i;
        if (d < call.head_dim) values[i] = fmaf(chunk[2 + d], part, values[i]);
      }
    }
    if (first > 0) __syncthreads();
#pragma unroll
    for (int i = 0; i < kDims; i++) fourths.of[warp][lane + 32 * i] = values[i];
    __syncthreads();
    const int d = threadIdx.x;
    float value = fourths.of[0][d];
    for (int i = 1; i < kAttentionWarps; i++) value += fourths.of[i][d];
    if (first + d < call.head_dim) write(first + d, value * scale);
  }
}

// grid: (rows of the pass, heads)
__global__ void __launch_bounds__(kAttentionThreads) join_chunks(AttentionCall call) {
  let_next_begin();
  wait_for_earlier();
  const int head = blockIdx.y;
  float* out =
      call.out + call.rows[blockIdx.x] * call.out_stride + std::int64_t{head} * call.head_dim;
  join(call, blockIdx.x, head, [&](int d, float value) { out[d] = value; });
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

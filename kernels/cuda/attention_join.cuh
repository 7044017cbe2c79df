// The second of attention's kernels, which joins what the chunks of a row have left, where another
// file makes it on the way to what comes next: a product that rounds the rows.
#pragma once

#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kAttentionWarps = 4, kAttentionThreads = 32 * kAttentionWarps;

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
  const int* groups;      // [groups + 1]  into rows
  const int* items;       // [items, 2]    group, chunk
};

/// A listed row's chunks of one head at one dimension, in order.
__device__ inline float joined(const AttentionCall& call, int listed, int head, int d) {
  const int begin = call.chunk_base[listed], end = call.chunk_base[listed + 1];
  const std::int64_t step = std::int64_t{call.n_heads} * (2 + call.head_dim);
  const float* chunk = call.partials + begin * step + std::int64_t{head} * (2 + call.head_dim);
  float top = -kInfinity, sum = 0, value = 0;
  for (int c = begin; c < end; c++, chunk += step) {
    const float new_top = Larger()(top, chunk[0]);
    const float old_part = exp_f32(top - new_top), part = exp_f32(chunk[0] - new_top);
    sum = fmaf(chunk[1], part, sum * old_part);
    value = fmaf(chunk[2 + d], part, value * old_part);
    top = new_top;
  }
  return value * (1.0f / sum);
}

/// Of a block of the join.
inline int join_threads(int head_dim) {
  return head_dim < kAttentionThreads ? (head_dim + 31) / 32 * 32 : kAttentionThreads;
}

// grid: (rows of the pass, heads); a thread is a dimension at a time
__global__ void __launch_bounds__(kAttentionThreads) join_chunks(AttentionCall call) {
  let_next_begin();
  wait_for_earlier();
  const int head = blockIdx.y, row = call.rows[blockIdx.x];
  for (int d = threadIdx.x; d < call.head_dim; d += blockDim.x)
    call.out[row * call.out_stride + std::int64_t{head} * call.head_dim + d] =
        joined(call, blockIdx.x, head, d);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

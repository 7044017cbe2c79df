// The second attention kernel: joins the partial results of a row's chunks (online softmax). matmul.cu also runs the
// join in the kernel that rounds rows for a product (kernel fusion).
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/ops.h"

namespace kernels::DECOSCOPE_GPU {

class CudaDevice;

namespace {

constexpr int kAttentionWarps = 4, kAttentionThreads = 32 * kAttentionWarps;

/// A chunk of a group of rows. All members are ints, like the lists.
struct ChunkItem {
  int first, end;  // rows of the pass in the group
  int chunk;
  int page, n_cached;  // the page, and how many of its positions are cached
};
/// A row of the pass.
struct ListedRow {
  int row;         // of the plan
  int first, pos;  // positions that it sees, [first, pos]
  int chain;       // index that position 0 would have in RowsPlan::chain
  int chunks;      // index that chunk 0 would have among all chunks of the pass
};

/// Arguments of both kernels for one pass. Lists are in device memory.
struct AttentionCall {
  const char* k_pages;
  const char* v_pages;
  std::int64_t page_bytes;
  int n_kv_heads, head_dim, n_heads;
  float scale;
  float softcap;  // 0: none
  int window;     // 0: none
  const float* q;
  std::int64_t q_stride;
  const void* staged_k;
  const void* staged_v;
  float* out;
  std::int64_t out_stride;
  float* partials;  // [row's chunk][n_heads][2 + head_dim]: largest score, sum of weights, values
  const int *seq, *pos, *chain_begin, *prefix_len, *page_begin, *pages, *chain;  // of the plan
  const int* rows;        // of the pass, sequence by sequence
  const int* chunk_base;  // [rows of the pass + 1]  first chunk of each row
  const ListedRow* listed;
  const ChunkItem* items;
};

/// Sums over every fourth chunk, of 128 dimensions.
struct FourthsOfJoin {
  float of[kAttentionWarps][kAttentionThreads];
};

/// Online softmax over the chunks of one row and head: rescales each chunk's weights and values to the largest score of
/// all chunks, adds them and divides. The sum of weights adds a lane's chunks in order, then a tree; values add every
/// fourth chunk in order, then the four sums in order. One thread calls write(dimension, value) for each dimension.
/// Synchronises the block.
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

/// True if a separate kernel rounds the rows before a product of these weights, once for all
/// outputs: weights of a half type and at most 128 rows. That kernel can also compute the rows
/// (kernel fusion).
bool rounds_rows_once(const PackedMatrix& w, int n_rows);
/// The product of attention's output: joins the chunks of a pass into chunks.out and rounds them in one kernel, then
/// multiplies.
/// @param chunks  a pass over all n_rows rows, with chunks.out [n_rows, to.w.k] without gaps;
///                rounds_rows_once(to.w, n_rows) must be true
void multiply_joined(CudaDevice& cuda,
                     const AttentionCall& chunks,
                     int n_rows,
                     const Projection& to);

}  // namespace kernels::DECOSCOPE_GPU

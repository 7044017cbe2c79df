// Attention of training and its backward, FlashAttention-style: tiles of rows are in shared memory,
// and tiles of scores never leave the block. A block has kTile rows with eight threads each: thread
// c of a row has the keys c, c + 8, ... of a tile, and the columns c, c + 8, ... of a head. Tiles
// are processed in order, so every sum has one fixed order.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/train/parts.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kThreadsARow = 8;
constexpr float kNoScore = -3.0e38f;

/// Arguments that the three kernels share.
template <class S>
struct TrainAttentionArguments {
  const typename S::Element* qkv;
  const AttentionSpan* spans;
  AttentionRows heads;
  float scale;
  __device__ int stride() const { return (heads.n_heads + 2 * heads.n_kv_heads) * heads.head_dim; }
  __device__ int out_stride() const { return heads.n_heads * heads.head_dim; }
  __device__ const typename S::Element* q(int head) const { return qkv + head * heads.head_dim; }
  __device__ const typename S::Element* k(int kv_head) const {
    return qkv + (heads.n_heads + kv_head) * heads.head_dim;
  }
  __device__ const typename S::Element* v(int kv_head) const {
    return qkv + (heads.n_heads + heads.n_kv_heads + kv_head) * heads.head_dim;
  }
};

__device__ inline bool attends_to(const AttentionSpan& spans, int row, int other) {
  return (other >= spans.begin && other < spans.prefix_end) ||
         (other >= spans.own_begin && other <= row);
}

/// Rows [first, first + kTile) of a head as f32, [kTile, width + 1]; rows outside are 0.
template <class S, int kTile>
__device__ void load_train_tile(
    const typename S::Element* x, int stride, int first, int n_rows, int width, float* tile) {
  for (int at = threadIdx.x; at < kTile * width; at += kTile * kThreadsARow) {
    const int row = at / width, d = at % width;
    tile[row * (width + 1) + d] =
        first + row < n_rows ? S::widen(x[std::int64_t{first + row} * stride + d]) : 0.0f;
  }
}

__device__ inline float train_dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum = fmaf(a[i], b[i], sum);
  return sum;
}

/// Reduces over the eight threads of a row.
template <class Combine>
__device__ float over_row(float x, const Combine& combine) {
  for (int by = kThreadsARow / 2; by > 0; by /= 2) x = combine(x, across(x, by));
  return x;
}

/// sums[i] += the sum over a tile's rows j of factor[j] x[j, c + 8 i].
template <int kTile, int kColumns>
__device__ void add_train_tile(
    float (&sums)[kColumns], const float* factor, const float* x, int c, int width) {
  for (int j = 0; j < kTile; j++) {
    const float f = factor[j];
    const float* row = x + j * (width + 1) + c;
#pragma unroll
    for (int i = 0; i < kColumns; i++)
      if (c + kThreadsARow * i < width) sums[i] = fmaf(f, row[kThreadsARow * i], sums[i]);
  }
}

template <class S, int kColumns>
__device__ void store_train_row(
    const float (&values)[kColumns], float scale, int c, int width, typename S::Element* to) {
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    const int d = c + kThreadsARow * i;
    if (d < width) to[d] = S::narrow(values[i] * scale);
  }
}

/// The first row that any of [first, last) attends to.
__device__ inline int first_attended(const AttentionSpan* spans, int first, int last) {
  int begin = spans[first].begin;
  for (int row = first + 1; row < last; row++)
    begin = spans[row].begin < begin ? spans[row].begin : begin;
  return begin;
}

// grid: tiles of rows, heads
template <class S, int kTile, int kColumns>
__global__ void __launch_bounds__(kTile* kThreadsARow)
    train_attention_rows(TrainAttentionArguments<S> in, typename S::Element* out, float* lse) {
  const AttentionRows& h = in.heads;
  const int first = blockIdx.x * kTile, head = blockIdx.y, width = h.head_dim;
  const int kv_head = head / (h.n_heads / h.n_kv_heads);
  const int last = first + kTile < h.n_rows ? first + kTile : h.n_rows;
  const int r = threadIdx.x / kThreadsARow, c = threadIdx.x % kThreadsARow, row = first + r;
  auto* q = reinterpret_cast<float*>(dynamic_shared());
  float* k = q + kTile * (width + 1);
  float* v = k + kTile * (width + 1);
  float* p = v + kTile * (width + 1);
  AttentionSpan own = {row, row, row + 1, row};
  if (row < last) own = in.spans[row];
  load_train_tile<S, kTile>(in.q(head), in.stride(), first, h.n_rows, width, q);

  float top = kNoScore, total = 0, sums[kColumns] = {};
  for (int at = first_attended(in.spans, first, last); at < last; at += kTile) {
    load_train_tile<S, kTile>(in.k(kv_head), in.stride(), at, h.n_rows, width, k);
    load_train_tile<S, kTile>(in.v(kv_head), in.stride(), at, h.n_rows, width, v);
    __syncthreads();
    float score[kTile / kThreadsARow], most = top;
#pragma unroll
    for (int i = 0; i < kTile / kThreadsARow; i++) {
      const int j = c + kThreadsARow * i;
      score[i] = kNoScore;
      if (attends_to(own, row, at + j))
        score[i] = train_dot(q + r * (width + 1), k + j * (width + 1), width) * in.scale;
      most = score[i] > most ? score[i] : most;
    }
    most = over_row(most, Larger());
    float part = 0;
#pragma unroll
    for (int i = 0; i < kTile / kThreadsARow; i++) {
      const float e = score[i] > kNoScore ? exp_f32(score[i] - most) : 0.0f;
      p[r * (kTile + 1) + c + kThreadsARow * i] = e;
      part += e;
    }
    const float shrink = exp_f32(top - most);
    total = total * shrink + over_row(part, Plus());
    top = most;
#pragma unroll
    for (int i = 0; i < kColumns; i++) sums[i] *= shrink;
    __syncthreads();
    add_train_tile<kTile>(sums, p + r * (kTile + 1), v, c, width);
    __syncthreads();
  }
  if (row >= last) return;
  store_train_row<S>(sums, total > 0 ? 1.0f / total : 0.0f, c, width,
                     out + std::int64_t{row} * in.out_stride() + head * width);
  if (c == 0) lse[std::int64_t{row} * h.n_heads + head] = total > 0 ? top + logf(total) : 0.0f;
}

// dS = P (dP - delta) scale with dP = dO V and delta = dO O, P recomputed from the scores and lse;
// dQ = dS K. Leaves delta, [n_rows, n_heads], for the keys' and values' kernel.
// grid: tiles of rows, heads
template <class S, int kTile, int kColumns>
__global__ void __launch_bounds__(kTile* kThreadsARow)
    train_attention_queries(TrainAttentionArguments<S> in,
                            const typename S::Element* out,
                            const typename S::Element* d_out,
                            const float* lse,
                            float* delta,
                            typename S::Element* d_qkv) {
  const AttentionRows& h = in.heads;
  const int first = blockIdx.x * kTile, head = blockIdx.y, width = h.head_dim;
  const int kv_head = head / (h.n_heads / h.n_kv_heads);
  const int last = first + kTile < h.n_rows ? first + kTile : h.n_rows;
  const int r = threadIdx.x / kThreadsARow, c = threadIdx.x % kThreadsARow, row = first + r;
  auto* q = reinterpret_cast<float*>(dynamic_shared());
  float* d_o = q + kTile * (width + 1);
  float* k = d_o + kTile * (width + 1);
  float* v = k + kTile * (width + 1);
  float* d_s = v + kTile * (width + 1);
  AttentionSpan own = {row, row, row + 1, row};
  float own_lse = 0, dot = 0;
  load_train_tile<S, kTile>(in.q(head), in.stride(), first, h.n_rows, width, q);
  load_train_tile<S, kTile>(d_out + head * width, in.out_stride(), first, h.n_rows, width, d_o);
  __syncthreads();
  if (row < last) {
    own = in.spans[row];
    own_lse = lse[std::int64_t{row} * h.n_heads + head];
    const auto* o = out + std::int64_t{row} * in.out_stride() + head * width;
    for (int d = c; d < width; d += kThreadsARow)
      dot = fmaf(S::widen(o[d]), d_o[r * (width + 1) + d], dot);
  }
  dot = over_row(dot, Plus());
  if (row < last && c == 0) delta[std::int64_t{row} * h.n_heads + head] = dot;

  float sums[kColumns] = {};
  for (int at = first_attended(in.spans, first, last); at < last; at += kTile) {
    load_train_tile<S, kTile>(in.k(kv_head), in.stride(), at, h.n_rows, width, k);
    load_train_tile<S, kTile>(in.v(kv_head), in.stride(), at, h.n_rows, width, v);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile / kThreadsARow; i++) {
      const int j = c + kThreadsARow * i;
      float d = 0;
      if (attends_to(own, row, at + j)) {
        const float score = train_dot(q + r * (width + 1), k + j * (width + 1), width) * in.scale;
        const float d_p = train_dot(d_o + r * (width + 1), v + j * (width + 1), width);
        d = exp_f32(score - own_lse) * (d_p - dot) * in.scale;
      }
      d_s[r * (kTile + 1) + j] = d;
    }
    __syncthreads();
    add_train_tile<kTile>(sums, d_s + r * (kTile + 1), k, c, width);
    __syncthreads();
  }
  if (row < last)
    store_train_row<S>(sums, 1.0f, c, width,
                       d_qkv + std::int64_t{row} * in.stride() + head * width);
}

// dV = P dO and dK = dS Q, summed over the rows that attend to a key and over the query heads that
// share the kv head.
// grid: tiles of keys, kv heads
template <class S, int kTile, int kColumns>
__global__ void __launch_bounds__(kTile* kThreadsARow)
    train_attention_keys(TrainAttentionArguments<S> in,
                         const typename S::Element* d_out,
                         const float* lse,
                         const float* delta,
                         typename S::Element* d_qkv) {
  const AttentionRows& h = in.heads;
  const int first = blockIdx.x * kTile, kv_head = blockIdx.y, width = h.head_dim;
  const int n_shared = h.n_heads / h.n_kv_heads;
  const int last = first + kTile < h.n_rows ? first + kTile : h.n_rows;
  const int r = threadIdx.x / kThreadsARow, c = threadIdx.x % kThreadsARow, key = first + r;
  auto* k = reinterpret_cast<float*>(dynamic_shared());
  float* v = k + kTile * (width + 1);
  float* q = v + kTile * (width + 1);
  float* d_o = q + kTile * (width + 1);
  float* p = d_o + kTile * (width + 1);
  float* d_s = p + kTile * (kTile + 1);
  int end = first;  // of the rows that attend to any of these keys
  for (int other = first; other < last; other++)
    end = in.spans[other].end > end ? in.spans[other].end : end;
  load_train_tile<S, kTile>(in.k(kv_head), in.stride(), first, h.n_rows, width, k);
  load_train_tile<S, kTile>(in.v(kv_head), in.stride(), first, h.n_rows, width, v);

  float d_k[kColumns] = {}, d_v[kColumns] = {};
  for (int head = kv_head * n_shared; head < (kv_head + 1) * n_shared; head++) {
    for (int at = first; at < end; at += kTile) {
      load_train_tile<S, kTile>(in.q(head), in.stride(), at, h.n_rows, width, q);
      load_train_tile<S, kTile>(d_out + head * width, in.out_stride(), at, h.n_rows, width, d_o);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kTile / kThreadsARow; i++) {
        const int j = c + kThreadsARow * i, row = at + j;
        float own_p = 0, own_d = 0;
        if (key < last && row < h.n_rows && attends_to(in.spans[row], row, key)) {
          const std::int64_t of_row = std::int64_t{row} * h.n_heads + head;
          const float score = train_dot(q + j * (width + 1), k + r * (width + 1), width) * in.scale;
          own_p = exp_f32(score - lse[of_row]);
          const float d_p = train_dot(d_o + j * (width + 1), v + r * (width + 1), width);
          own_d = own_p * (d_p - delta[of_row]) * in.scale;
        }
        p[r * (kTile + 1) + j] = own_p;
        d_s[r * (kTile + 1) + j] = own_d;
      }
      __syncthreads();
      add_train_tile<kTile>(d_v, p + r * (kTile + 1), d_o, c, width);
      add_train_tile<kTile>(d_k, d_s + r * (kTile + 1), q, c, width);
      __syncthreads();
    }
  }
  if (key >= last) return;
  auto* to = d_qkv + std::int64_t{key} * in.stride();
  store_train_row<S>(d_k, 1.0f, c, width, to + (h.n_heads + kv_head) * width);
  store_train_row<S>(d_v, 1.0f, c, width, to + (h.n_heads + h.n_kv_heads + kv_head) * width);
}

/// Bytes of shared memory for n_rows_tiles tiles of rows and n_score_tiles tiles of scores, in f32.
std::size_t tile_bytes(int tile, int width, int n_rows_tiles, int n_score_tiles) {
  return sizeof(float) * static_cast<std::size_t>(tile) *
         static_cast<std::size_t>(n_rows_tiles * (width + 1) + n_score_tiles * (tile + 1));
}

dim3 tiles_of(const AttentionRows& h, int tile, int n_heads) {
  return {static_cast<unsigned>(blocks_for(h.n_rows, tile)), static_cast<unsigned>(n_heads)};
}

template <class S>
TrainAttentionArguments<S> arguments_of(const AttentionRows& h,
                                        const void* qkv,
                                        const AttentionSpan* spans) {
  return {static_cast<const typename S::Element*>(qkv), spans, h,
          1.0f / std::sqrt(static_cast<float>(h.head_dim))};
}

template <class S, int kTile, int kColumns>
void attention_forward(CudaDevice& cuda,
                       const AttentionRows& h,
                       const void* qkv,
                       const AttentionSpan* spans,
                       void* out,
                       float* lse) {
  cuda.launch("train_attention", train_attention_rows<S, kTile, kColumns>,
              tiles_of(h, kTile, h.n_heads), kTile * kThreadsARow,
              tile_bytes(kTile, h.head_dim, 3, 1), arguments_of<S>(h, qkv, spans),
              static_cast<typename S::Element*>(out), lse);
}

template <class S, int kTile, int kColumns>
void attention_backward(CudaDevice& cuda,
                        const AttentionRows& h,
                        const void* qkv,
                        const AttentionSpan* spans,
                        const void* out,
                        const void* d_out,
                        const float* lse,
                        void* d_qkv) {
  using Element = typename S::Element;
  auto* delta =
      static_cast<float*>(cuda.scratch(Use::Partials, std::int64_t{h.n_rows} * h.n_heads * 4));
  cuda.launch("train_attention_queries", train_attention_queries<S, kTile, kColumns>,
              tiles_of(h, kTile, h.n_heads), kTile * kThreadsARow,
              tile_bytes(kTile, h.head_dim, 4, 1), arguments_of<S>(h, qkv, spans),
              static_cast<const Element*>(out), static_cast<const Element*>(d_out), lse, delta,
              static_cast<Element*>(d_qkv));
  cuda.launch("train_attention_keys", train_attention_keys<S, kTile, kColumns>,
              tiles_of(h, kTile, h.n_kv_heads), kTile * kThreadsARow,
              tile_bytes(kTile, h.head_dim, 4, 2), arguments_of<S>(h, qkv, spans),
              static_cast<const Element*>(d_out), lse, delta, static_cast<Element*>(d_qkv));
}

void check_train_heads(const AttentionRows& h) {
  ensure(h.n_rows >= 0 && h.n_heads > 0 && h.n_kv_heads > 0 && h.n_heads % h.n_kv_heads == 0,
         "attention: n_heads must be a multiple of n_kv_heads");
  ensure(h.head_dim > 0 && h.head_dim <= 256, "attention: head_dim must be 1 to 256");
}

}  // namespace

void add_train_attention_kernels(TrainKernels& kernels) {
  kernels.attention = [](Device& device, DType type, const AttentionRows& h, const void* qkv,
                         const AttentionSpan* spans, void* out, float* lse) {
    check_train_heads(h);
    if (h.n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      CudaDevice& cuda = cuda_of(device);
      if (h.head_dim <= 64)
        attention_forward<S, 32, 8>(cuda, h, qkv, spans, out, lse);
      else
        attention_forward<S, 16, 32>(cuda, h, qkv, spans, out, lse);
    });
  };
  kernels.attention_backward = [](Device& device, DType type, const AttentionRows& h,
                                  const void* qkv, const AttentionSpan* spans, const void* out,
                                  const void* d_out, const float* lse, void* d_qkv) {
    check_train_heads(h);
    if (h.n_rows == 0) return;
    for_train_type(type, [&]<class S>(S) {
      CudaDevice& cuda = cuda_of(device);
      if (h.head_dim <= 64)
        attention_backward<S, 32, 8>(cuda, h, qkv, spans, out, d_out, lse, d_qkv);
      else
        attention_backward<S, 16, 32>(cuda, h, qkv, spans, out, d_out, lse, d_qkv);
    });
  };
}

}  // namespace kernels::DECOSCOPE_GPU

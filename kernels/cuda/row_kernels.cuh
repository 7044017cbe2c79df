// Row kernels and their parts, which fused kernels of other files also use: norm and gate before a product (matmul.cu),
// RoPE before staging (cache.cu).
#pragma once

#include "kernels/cuda/math.cuh"
#include "kernels/gate.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kNormThreads = 1024, kRowThreads = 256;
constexpr int kNormFours = 2;  // groups of four elements that a thread keeps in registers

/// Threads of a norm's block: whole warps, one thread for four neighbours, at most kNormThreads.
constexpr int norm_threads(int dim) {
  return dim > 4 * kNormThreads - 128 ? kNormThreads : (dim + 127) / 128 * 32;
}

/// A row of a norm. Thread i / 4 % 1024 handles elements i .. i + 3 and adds their squares in
/// order. The width of the row does not matter, so zeros appended to a row do not change the sums.
struct NormRow {
  const float *x, *w;
  int dim;
  bool in_fours;
};

/// RMSNorm of a row: calls take(i, n, y) for each group of four elements in [0, width), with y = x / sqrt(mean(x^2) + eps)
/// * w and n the number of elements before dim; elements from dim on are 0. width is at most dim plus a chunk. take() may
/// overwrite the group's x. Synchronises the block.
template <class Take>
__device__ inline void for_normed(const NormRow& row, float eps, int width, const Take& take) {
  constexpr int kStep = 4 * kNormThreads;
  const int own = 4 * static_cast<int>(threadIdx.x);
  Four x[kNormFours], w[kNormFours];
#pragma unroll
  for (int at = 0; at < kNormFours; at++) {
    const int i = own + at * kStep;
    x[at] = load_four(row.x + i, row.dim - i, row.in_fours);
    w[at] = load_four(row.w + i, row.dim - i, row.in_fours);
  }
  float sum = 0;
  const auto add_squares = [&](const Four& four) {
#pragma unroll
    for (int j = 0; j < 4; j++) sum = fmaf(four.of[j], four.of[j], sum);
  };
#pragma unroll
  for (int at = 0; at < kNormFours; at++) add_squares(x[at]);
  for (int i = own + kNormFours * kStep; i < row.dim; i += kStep)
    add_squares(load_four(row.x + i, row.dim - i, row.in_fours));
  sum = over_warps(sum, 0.0f, Plus());
  // Exact divisions and square root: if a model is enlarged by 4 in dim and eps is divided by 4,
  // each result changes only by a power of two.
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(row.dim) + eps);
  const auto give = [&](int i, Four of_x, const Four& of_w) {
    if (i >= width) return;
#pragma unroll
    for (int j = 0; j < 4; j++) of_x.of[j] = of_x.of[j] * scale * of_w.of[j];
    take(i, row.dim - i, of_x);
  };
#pragma unroll
  for (int at = 0; at < kNormFours; at++) give(own + at * kStep, x[at], w[at]);
  for (int i = own + kNormFours * kStep; i < width; i += kStep)
    give(i, load_four(row.x + i, row.dim - i, row.in_fours),
         load_four(row.w + i, row.dim - i, row.in_fours));
}

// y = x / sqrt(mean(x^2) + eps) * w.  x, y [rows, dim], may be the same; w [dim]
// grid: one block of norm_threads(dim) per row
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_rows(const float* x, const float* w, float* y, int dim, float eps) {
  let_next_begin();
  wait_for_earlier();
  const bool in_fours = lie_in_fours(dim, x, w, y);
  x += std::int64_t{blockIdx.x} * dim;
  y += std::int64_t{blockIdx.x} * dim;
  for_normed({x, w, dim, in_fours}, eps, dim,
             [&](int i, int n, const Four& normed) { store_four(y + i, normed, n, in_fours); });
}

/// f(gate) * up with f as in kernels/cpu/rows_body.h.
__device__ inline float gated(Gate kind, float gate, float up) {
  constexpr float kFactor = -2 * 0.797884561f;  // -2 sqrt(2 / pi)
  float exponent = 0 - gate;
  if (kind == Gate::GeluTanh) exponent = gate * fmaf(gate * gate, 0.044715f, 1.0f) * kFactor;
  exponent = exponent > 88.0f ? 88.0f : exponent;  // NaN stays NaN
  return gate / (1.0f + exp_f32(exponent)) * up;
}

/// The same for four neighbours; zeros give zeros.
__device__ inline Four gated(Gate kind, const Four& gate, const Four& up) {
  Four y;
#pragma unroll
  for (int j = 0; j < 4; j++) y.of[j] = gated(kind, gate.of[j], up.of[j]);
  return y;
}

// y[r, i] = gate(x[r, i]) x[r, hidden + i].  grid: (rows, blocks of fours)
__global__ void __launch_bounds__(kRowThreads)
    glu_elements(Gate kind, const float* x, float* y, int hidden) {
  let_next_begin();
  wait_for_earlier();
  const bool in_fours = lie_in_fours(hidden, x, y);
  const std::int64_t row = blockIdx.x;
  const int i = 4 * static_cast<int>(blockIdx.y * kRowThreads + threadIdx.x);
  const float* gate = x + row * 2 * hidden + i;
  const Four own = gated(kind, load_four(gate, hidden - i, in_fours),
                         load_four(gate + hidden, hidden - i, in_fours));
  store_four(y + row * hidden + i, own, hidden - i, in_fours);
}

/// Arguments of RoPE: heads side by side from x.
struct RopeCall {
  float* x;
  std::int64_t x_stride;
  const int* pos;
  const float* table;  // [max_pos, head_dim / 2, 2]
  std::int64_t n_rows;
  int n_heads, head_dim;
};

constexpr int kRopeThreads = 128;

/// Block (threads of a head, heads) and grid (rows, blocks of heads): a thread handles four pairs of a head.
inline dim3 rope_block(int head_dim) {
  const int fours = (head_dim / 2 + 3) / 4, a_head = fours < kRopeThreads ? fours : kRopeThreads;
  return dim3(static_cast<unsigned>(a_head), static_cast<unsigned>(kRopeThreads / a_head));
}
inline dim3 rope_grid(const RopeCall& call, int n_heads) {
  const int a_block = static_cast<int>(rope_block(call.head_dim).y);
  return dim3(static_cast<unsigned>(call.n_rows),
              static_cast<unsigned>((n_heads + a_block - 1) / a_block));
}

/// Elements i .. i + 3 of a head, and their partners half a head later.
struct HeadHalves {
  Four low, high;
};
__device__ inline bool heads_in_fours(const RopeCall& call) {
  return lie_in_fours(call.x_stride | call.head_dim / 2, call.x, call.table);
}
__device__ inline HeadHalves load_halves(const RopeCall& call,
                                         const float* low,
                                         int i,
                                         bool in_fours) {
  const int half = call.head_dim / 2, n = half - i;
  return {load_four(low + i, n, in_fours), load_four(low + half + i, n, in_fours)};
}

/// Rotates elements i .. i + 3 of a head with their partners, in place.
__device__ inline HeadHalves rotate_halves(const RopeCall& call, float* low, int i, bool in_fours) {
  const int half = call.head_dim / 2, n = half - i;
  const float* turn = call.table + std::int64_t{call.pos[blockIdx.x]} * call.head_dim + 2 * i;
  const HeadHalves from = load_halves(call, low, i, in_fours);
  const Four turns[2] = {load_four(turn, 2 * n, in_fours),
                         load_four(turn + 4, 2 * n - 4, in_fours)};
  HeadHalves to;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const float c = turns[j / 2].of[j % 2 * 2], s = turns[j / 2].of[j % 2 * 2 + 1];
    const float a = from.low.of[j], b = from.high.of[j];
    to.low.of[j] = a * c - b * s;
    to.high.of[j] = b * c + a * s;
  }
  store_four(low + i, to.low, n, in_fours);
  store_four(low + half + i, to.high, n, in_fours);
  return to;
}

// RoPE in place. Launched with rope_block and rope_grid.
__global__ void __launch_bounds__(kRopeThreads) rope_pairs(RopeCall call) {
  let_next_begin();
  wait_for_earlier();
  const auto head = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (head >= call.n_heads) return;
  const bool in_fours = heads_in_fours(call);
  float* low = call.x + blockIdx.x * call.x_stride + std::int64_t{head} * call.head_dim;
  for (int i = 4 * threadIdx.x; i < call.head_dim / 2; i += 4 * blockDim.x)
    rotate_halves(call, low, i, in_fours);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

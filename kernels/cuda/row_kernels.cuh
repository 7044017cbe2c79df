// Kernels that take one row at a time, where another file makes them on the way to what comes next:
// a norm or a gate before a product rounds its rows, a rotation before keys are staged.
#pragma once

#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kNormThreads = 256, kRowThreads = 256;

/// 1 / sqrt(mean(x^2) + eps) of a row. Element i is thread i % 256's, added in order; so zeros
/// appended to a row add nothing but zeros. Meets the block.
__device__ inline float norm_scale(const float* x, int dim, float eps) {
  float sum = 0;
  for (int i = threadIdx.x; i < dim; i += kNormThreads) sum = fmaf(x[i], x[i], sum);
  sum = over_block<kNormThreads>(sum, Plus());
  // Plain divisions and a root: scaling dim by 4 and eps by 1/4 scales each by a power of two.
  return 1.0f / sqrtf(sum / static_cast<float>(dim) + eps);
}

// y = x / sqrt(mean(x^2) + eps) * w.  x, y [rows, dim], may be the same; w [dim]
// grid: a block a row
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_rows(const float* x, const float* w, float* y, int dim, float eps) {
  let_next_begin();
  wait_for_earlier();
  x += std::int64_t{blockIdx.x} * dim;
  y += std::int64_t{blockIdx.x} * dim;
  const float scale = norm_scale(x, dim, eps);
  for (int i = threadIdx.x; i < dim; i += kNormThreads) y[i] = x[i] * scale * w[i];
}

/// silu(gate) up; exp is cut off at 88, where silu is 0 to within f32.
__device__ inline float gated(float gate, float up) {
  const float exponent = 0 - gate > 88.0f ? 88.0f : 0 - gate;  // a NaN passes
  return gate / (1.0f + exp_f32(exponent)) * up;
}

// y[r, i] = silu(x[r, i]) x[r, hidden + i]
__global__ void __launch_bounds__(kRowThreads)
    swiglu_elements(const float* x, float* y, std::int64_t n, int hidden) {
  let_next_begin();
  wait_for_earlier();
  const std::int64_t at = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t row = at / hidden, i = at % hidden;
  y[at] = gated(x[row * 2 * hidden + i], x[row * 2 * hidden + hidden + i]);
}

/// Heads side by side from x, and by how much they are turned.
struct RopeCall {
  float* x;
  std::int64_t x_stride;
  const int* pos;
  const float* table;  // [max_pos, head_dim / 2, 2]
  std::int64_t n_rows;
  int n_heads, head_dim;
};

/// Turns elements i and i + half of a head.
__device__ inline void turn_pair(const RopeCall& call, std::int64_t row, float* low, int i) {
  float* high = low + call.head_dim / 2;
  const float* turn = call.table + std::int64_t{call.pos[row]} * call.head_dim + 2 * i;
  const float c = turn[0], s = turn[1], a = *low, b = *high;
  *low = a * c - b * s;
  *high = b * c + a * s;
}

// In place. A thread is a pair of a head of a row.
__global__ void __launch_bounds__(kRowThreads) rope_pairs(RopeCall call) {
  let_next_begin();
  wait_for_earlier();
  const std::int64_t at = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  const int half = call.head_dim / 2, i = static_cast<int>(at % half);
  const std::int64_t head = at / half, row = head / call.n_heads;
  if (row >= call.n_rows) return;
  turn_pair(call, row, call.x + row * call.x_stride + head % call.n_heads * call.head_dim + i, i);
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU

// Operations that take one row at a time: norm, rotation, activation. A thread's part of a row is
// the same whatever stands beside the row, so its sums are too.
#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kNormThreads = 256, kThreads = 256;

// y = x / sqrt(mean(x^2) + eps) * w.  x, y [rows, dim], may be the same; w [dim]
// grid: a block a row. Element i is thread i % 256's, added in order; so zeros appended to a row add
// nothing but zeros.
__global__ void __launch_bounds__(kNormThreads)
    rms_norm_rows(const float* x, const float* w, float* y, int dim, float eps) {
  x += std::int64_t{blockIdx.x} * dim;
  y += std::int64_t{blockIdx.x} * dim;
  float sum = 0;
  for (int i = threadIdx.x; i < dim; i += kNormThreads) sum = fmaf(x[i], x[i], sum);
  sum = over_block<kNormThreads>(sum, Plus());
  // Plain divisions and a root: scaling dim by 4 and eps by 1/4 scales each by a power of two.
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(dim) + eps);
  for (int i = threadIdx.x; i < dim; i += kNormThreads) y[i] = x[i] * scale * w[i];
}

// Turns pairs (i, i + half) of each head in place. A thread is a pair of a head of a row.
__global__ void __launch_bounds__(kThreads) rope_pairs(float* x,
                                                       std::int64_t x_stride,
                                                       std::int64_t n_pairs,
                                                       int n_heads,
                                                       int head_dim,
                                                       const int* pos,
                                                       const float* table) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= n_pairs) return;
  const int half = head_dim / 2, i = static_cast<int>(at % half);
  const std::int64_t head = at / half;
  const std::int64_t row = head / n_heads;
  float* low = x + row * x_stride + head % n_heads * head_dim + i;
  float* high = low + half;
  const float* turn = table + std::int64_t{pos[row]} * head_dim + 2 * i;
  const float c = turn[0], s = turn[1], a = *low, b = *high;
  *low = a * c - b * s;
  *high = b * c + a * s;
}

// y[r, i] = silu(x[r, i]) x[r, hidden + i]; exp is cut off at 88, where silu is 0 to within f32.
__global__ void __launch_bounds__(kThreads)
    swiglu_elements(const float* x, float* y, std::int64_t n, int hidden) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= n) return;
  const std::int64_t row = at / hidden, i = at % hidden;
  const float gate = x[row * 2 * hidden + i], up = x[row * 2 * hidden + hidden + i];
  const float exponent = 0 - gate > 88.0f ? 88.0f : 0 - gate;  // a NaN passes
  y[at] = gate / (1.0f + exp_f32(exponent)) * up;
}

__global__ void __launch_bounds__(kThreads)
    gather_elements(const float* from, const std::int64_t* at, int n, float* to) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i < n) to[i] = from[at[i]];
}

void gather(Device& device, const float* from, const std::int64_t* at, int n, float* to_host) {
  if (n == 0) return;
  CudaDevice& cuda = cuda_of(device);
  auto* told = static_cast<std::int64_t*>(cuda.scratch(Use::Pick, std::int64_t{n} * (8 + 4)));
  auto* found = reinterpret_cast<float*>(told + n);
  cuda.upload(told, at, std::int64_t{n} * 8);
  cuda.launch("gather", gather_elements, blocks_for(n, kThreads), kThreads, 0, from, told, n,
              found);
  cuda.download(to_host, found, std::int64_t{n} * 4);
}

void rms_norm(
    Device& device, const float* x, const float* w, float* y, int n_rows, int dim, float eps) {
  check_rms_norm(n_rows, dim);
  if (n_rows == 0) return;
  cuda_of(device).launch("rms_norm", rms_norm_rows, n_rows, kNormThreads, 0, x, w, y, dim, eps);
}

void rope(Device& device,
          float* x,
          std::int64_t x_stride,
          int n_rows,
          int n_heads,
          int head_dim,
          const int* pos,
          const float* table) {
  check_rope(n_rows, n_heads, head_dim, x_stride);
  const std::int64_t n = std::int64_t{n_rows} * n_heads * (head_dim / 2);
  if (n == 0) return;
  cuda_of(device).launch("rope", rope_pairs, blocks_for(n, kThreads), kThreads, 0, x, x_stride, n,
                         n_heads, head_dim, pos, table);
}

void swiglu(Device& device, const float* x, float* y, int n_rows, int hidden) {
  check_swiglu(n_rows, hidden);
  const std::int64_t n = std::int64_t{n_rows} * hidden;
  if (n == 0) return;
  cuda_of(device).launch("swiglu", swiglu_elements, blocks_for(n, kThreads), kThreads, 0, x, y, n,
                         hidden);
}

}  // namespace

void add_row_ops(Ops& ops) {
  ops.gather = gather;
  ops.rms_norm = rms_norm;
  ops.rope = rope;
  ops.swiglu = swiglu;
}

}  // namespace kernels::DECOSCOPE_GPU

// Operations on single rows: norm, RoPE, activation, addition. How a row is divided among threads
// does not depend on other rows, so the sums do not either (batch invariance).
#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/row_kernels.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

__global__ void __launch_bounds__(kRowThreads)
    gather_elements(const float* from, const std::int64_t* at, int n, float* to) {
  const int i = static_cast<int>(blockIdx.x) * kRowThreads + static_cast<int>(threadIdx.x);
  if (i < n) to[i] = from[at[i]];
}

void gather(Device& device, const float* from, const std::int64_t* at, int n, float* to_host) {
  if (n == 0) return;
  CudaDevice& cuda = cuda_of(device);
  auto* device_at =
      static_cast<std::int64_t*>(cuda.scratch(Use::Gather, std::int64_t{n} * (8 + 4)));
  auto* found = reinterpret_cast<float*>(device_at + n);
  cuda.upload(device_at, at, std::int64_t{n} * 8);
  cuda.launch("gather", gather_elements, blocks_for(n, kRowThreads), kRowThreads, 0, from,
              device_at, n, found);
  cuda.request_download(to_host, found, std::int64_t{n} * 4);
  cuda.finish_unless_deferred();
}

void rms_norm(
    Device& device, const float* x, const float* w, float* y, int n_rows, int dim, float eps) {
  check_rms_norm(n_rows, dim);
  if (n_rows == 0) return;
  cuda_of(device).launch_early("rms_norm", rms_norm_rows, n_rows, norm_threads(dim), 0, x, w, y,
                               dim, eps);
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
  if (n_rows == 0 || n_heads == 0) return;
  const RopeCall call = {x, x_stride, pos, table, n_rows, n_heads, head_dim};
  cuda_of(device).launch_early("rope", rope_pairs, rope_grid(call, n_heads), rope_block(head_dim),
                               0, call);
}

// RMSNorm of each head in place.  grid: (rows, heads), blocks of norm_threads(head_dim); w [2, head_dim]
__global__ void __launch_bounds__(kNormThreads) head_norm_rows(
    float* x, std::int64_t x_stride, int n_heads, int head_dim, const float* w, float eps) {
  let_next_begin();
  wait_for_earlier();
  const int head = blockIdx.y;
  x += blockIdx.x * x_stride + std::int64_t{head} * head_dim;
  if (head >= n_heads) w += head_dim;
  const bool in_fours = lie_in_fours(x_stride | head_dim, x, w);
  for_normed({x, w, head_dim, in_fours}, eps, head_dim,
             [&](int i, int n, const Four& normed) { store_four(x + i, normed, n, in_fours); });
}

void head_norm(Device& device,
               float* x,
               std::int64_t x_stride,
               int n_rows,
               int n_heads,
               int n_kv_heads,
               int head_dim,
               const float* w,
               float eps) {
  check_head_norm(n_rows, n_heads, n_kv_heads, head_dim, x_stride);
  if (n_rows == 0 || n_heads + n_kv_heads == 0) return;
  cuda_of(device).launch_early(
      "head_norm", head_norm_rows,
      dim3(static_cast<unsigned>(n_rows), static_cast<unsigned>(n_heads + n_kv_heads)),
      norm_threads(head_dim), 0, x, x_stride, n_heads, head_dim, w, eps);
}

void glu(Device& device, Gate gate, const float* x, float* y, int n_rows, int hidden) {
  check_glu(n_rows, hidden);
  if (n_rows == 0) return;
  const auto a_row = static_cast<unsigned>(blocks_for(hidden, 4 * kRowThreads));
  cuda_of(device).launch_early("glu", glu_elements, dim3(static_cast<unsigned>(n_rows), a_row),
                               kRowThreads, 0, gate, x, y, hidden);
}

__global__ void __launch_bounds__(kRowThreads)
    add_elements(const float* x, float* y, std::int64_t n) {
  let_next_begin();
  wait_for_earlier();
  const std::int64_t i = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i < n) y[i] += x[i];
}

__global__ void __launch_bounds__(kRowThreads)
    scale_and_cap_elements(float* x, std::int64_t n, float scale, float softcap) {
  let_next_begin();
  wait_for_earlier();
  const std::int64_t i = std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i >= n) return;
  const float value = x[i] * scale;
  x[i] = softcap > 0 ? capped(value, softcap) : value;
}

void scale_and_cap(Device& device, float* x, std::int64_t n, float scale, float softcap) {
  check_scale_and_cap(n, softcap);
  if (n == 0) return;
  cuda_of(device).launch_early("scale_and_cap", scale_and_cap_elements, blocks_for(n, kRowThreads),
                               kRowThreads, 0, x, n, scale, softcap);
}

void add(Device& device, const float* x, float* y, std::int64_t n) {
  if (n == 0) return;
  cuda_of(device).launch_early("add", add_elements, blocks_for(n, kRowThreads), kRowThreads, 0, x,
                               y, n);
}

}  // namespace

void add_row_ops(Ops& ops) {
  ops.gather = gather;
  ops.rms_norm = rms_norm;
  ops.rope = rope;
  ops.head_norm = head_norm;
  ops.glu = glu;
  ops.scale_and_cap = scale_and_cap;
  ops.add = add;
}

}  // namespace kernels::DECOSCOPE_GPU

// Operations on single rows; threads share the rows.
#include <algorithm>
#include <atomic>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"

namespace kernels::cpu {
namespace {

void rms_norm(
    Device& device, const float* x, const float* w, float* y, int n_rows, int dim, float eps) {
  check_rms_norm(n_rows, dim);
  CpuDevice& cpu = cpu_of(device);
  split(cpu, n_rows, std::int64_t{n_rows} * dim / 8, [&](int begin, int end, int) {
    for (int r = begin; r < end; r++)
      cpu.kernels.rms_norm(x + std::int64_t{r} * dim, w, y + std::int64_t{r} * dim, dim, eps);
  });
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
  CpuDevice& cpu = cpu_of(device);
  for (Scratch& scratch : cpu.own) scratch.at_least(std::int64_t{head_dim} * 4);
  const std::int64_t cost = std::int64_t{n_rows} * n_heads * head_dim / 8;
  split(cpu, n_rows, cost, [&](int begin, int end, int thread) {
    auto* scratch = reinterpret_cast<float*>(cpu.own[thread].at_least(0));
    for (int r = begin; r < end; r++)
      cpu.kernels.rope(x + r * x_stride, n_heads, head_dim, table + std::int64_t{pos[r]} * head_dim,
                       scratch);
  });
}

void swiglu(Device& device, const float* x, float* y, int n_rows, int hidden) {
  check_swiglu(n_rows, hidden);
  // Also cuts columns into pieces, so that all threads share a single row.
  constexpr int kColumns = 512;
  const int n_pieces = (hidden + kColumns - 1) / kColumns;
  CpuDevice& cpu = cpu_of(device);
  const std::int64_t cost = std::int64_t{n_rows} * hidden / 4;
  split(cpu, n_rows * n_pieces, cost, [&](int begin, int end, int) {
    for (int i = begin; i < end; i++) {
      const int first = i % n_pieces * kColumns;
      const float* row = x + std::int64_t{i / n_pieces} * 2 * hidden;
      cpu.kernels.swiglu(row + first, row + hidden + first,
                         y + std::int64_t{i / n_pieces} * hidden + first,
                         std::min(kColumns, hidden - first));
    }
  });
}

void add(Device&, const float* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i++) y[i] += x[i];
}

}  // namespace

void add_row_ops(Ops& ops) {
  ops.rms_norm = rms_norm;
  ops.rope = rope;
  ops.swiglu = swiglu;
  ops.add = add;
}

}  // namespace kernels::cpu

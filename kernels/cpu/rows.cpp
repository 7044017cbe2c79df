// Operations on single rows; threads share the rows.
#include <algorithm>
#include <atomic>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_times.h"

namespace kernels::cpu {
namespace {

void rms_norm(
    Device& device, const float* x, const float* w, float* y, int n_rows, int dim, float eps) {
  check_rms_norm(n_rows, dim);
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Norms);
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
  const TimedOp timed(cpu, OpKind::Rope);
  for (Scratch& scratch : cpu.own) scratch.at_least(std::int64_t{head_dim} * 4);
  const std::int64_t cost = std::int64_t{n_rows} * n_heads * head_dim / 8;
  split(cpu, n_rows, cost, [&](int begin, int end, int thread) {
    auto* scratch = reinterpret_cast<float*>(cpu.own[thread].at_least(0));
    for (int r = begin; r < end; r++)
      cpu.kernels.rope(x + r * x_stride, n_heads, head_dim, table + std::int64_t{pos[r]} * head_dim,
                       scratch);
  });
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
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Norms);
  const int n = n_heads + n_kv_heads;
  split(cpu, n_rows, std::int64_t{n_rows} * n * head_dim / 8, [&](int begin, int end, int) {
    for (int r = begin; r < end; r++)
      for (int h = 0; h < n; h++) {
        float* head = x + r * x_stride + std::int64_t{h} * head_dim;
        cpu.kernels.rms_norm(head, h < n_heads ? w : w + head_dim, head, head_dim, eps);
      }
  });
}

void glu(Device& device, Gate gate, const float* x, float* y, int n_rows, int hidden) {
  check_glu(n_rows, hidden);
  // Also cuts columns into pieces, so that all threads share a single row.
  constexpr int kColumns = 512;
  const int n_pieces = (hidden + kColumns - 1) / kColumns;
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Activation);
  const auto run = cpu.kernels.glu[static_cast<int>(gate)];
  const std::int64_t cost = std::int64_t{n_rows} * hidden / 4;
  split(cpu, n_rows * n_pieces, cost, [&](int begin, int end, int) {
    for (int i = begin; i < end; i++) {
      const int first = i % n_pieces * kColumns;
      const float* row = x + std::int64_t{i / n_pieces} * 2 * hidden;
      run(row + first, row + hidden + first, y + std::int64_t{i / n_pieces} * hidden + first,
          std::min(kColumns, hidden - first));
    }
  });
}

void scale_and_cap(Device& device, float* x, std::int64_t n, float scale, float softcap) {
  check_scale_and_cap(n, softcap);
  constexpr int kPiece = 4096;
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Other);
  const auto n_pieces = static_cast<int>((n + kPiece - 1) / kPiece);
  split(cpu, n_pieces, n / 4, [&](int begin, int end, int) {
    for (int i = begin; i < end; i++) {
      const std::int64_t first = std::int64_t{i} * kPiece;
      cpu.kernels.scale_and_cap(
          x + first, static_cast<int>(std::min<std::int64_t>(kPiece, n - first)), scale, softcap);
    }
  });
}

void add(Device& device, const float* x, float* y, std::int64_t n) {
  const TimedOp timed(cpu_of(device), OpKind::Other);
  for (std::int64_t i = 0; i < n; i++) y[i] += x[i];
}

}  // namespace

void add_row_ops(Ops& ops) {
  ops.rms_norm = rms_norm;
  ops.rope = rope;
  ops.head_norm = head_norm;
  ops.glu = glu;
  ops.scale_and_cap = scale_and_cap;
  ops.add = add;
}

}  // namespace kernels::cpu

// Packing, multiplication and embedding. kernel_table.h describes the layout of panels.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/memory/turns.h"
#include "kernels/cpu/op_times.h"
#include "kernels/cpu/quantised/pack.h"
#include "kernels/error.h"

namespace kernels::cpu {
namespace {

/// The padded k in storage: a multiple of AMX's tile size for bf16, and of a cache line for f16.
int stored_k(DType dtype, int k) {
  const int multiple = dtype == DType::BF16 ? 32 : dtype == DType::F16 ? 2 : 1;
  return (k + multiple - 1) / multiple * multiple;
}
std::int64_t panel_bytes(DType dtype, int k) {
  if (is_quantised(dtype)) return quantised_panel_bytes(dtype, k);
  return std::int64_t{kPanel} * stored_k(dtype, k) * bytes_of(dtype);
}
int n_panels_of(int n) {
  return (n + kPanel - 1) / kPanel;
}

std::int64_t packed_bytes(DType dtype, int n, int k) {
  ensure(n > 0 && k > 0, "packed_bytes: n and k must be at least 1");
  ensure(!is_quantised(dtype) || k % kBlock == 0,
         "packed_bytes: k of quantised weights must be a multiple of 32");
  return n_panels_of(n) * panel_bytes(dtype, k);
}

float element_as_f32(const char* data, DType dtype, std::int64_t i) {
  if (dtype == DType::F32) {
    float x;
    std::memcpy(&x, data + 4 * i, 4);
    return x;
  }
  std::uint16_t x;
  std::memcpy(&x, data + 2 * i, 2);
  return dtype == DType::F16 ? f32_from_f16(x) : f32_from_bf16(x);
}

std::uint16_t element_16(const char* data, DType from, std::int64_t i, DType to) {
  if (from == to) {
    std::uint16_t x;
    std::memcpy(&x, data + 2 * i, 2);
    return x;
  }
  const float x = element_as_f32(data, from, i);
  return to == DType::F16 ? f16_from_f32(x) : bf16_from_f32(x);
}

// Index of value j of output `lane` in a panel, in elements of `dtype`.
std::int64_t place_in_panel(DType dtype, int lane, int j) {
  if (dtype == DType::BF16) return std::int64_t{j / 2} * 2 * kPanel + 2 * lane + j % 2;
  return std::int64_t{j} * kPanel + lane;
}

void pack_panel(const char* w, DType from, int n, int k, DType to, int panel, char* packed) {
  std::memset(packed, 0, panel_bytes(to, k));
  for (int lane = 0; lane < kPanel && panel * kPanel + lane < n; lane++) {
    const std::int64_t row = std::int64_t{panel * kPanel + lane} * k;
    if (to == DType::F32) {
      auto* at = reinterpret_cast<float*>(packed);
      for (int j = 0; j < k; j++)
        at[place_in_panel(to, lane, j)] = element_as_f32(w, from, row + j);
    } else {
      auto* at = reinterpret_cast<std::uint16_t*>(packed);
      for (int j = 0; j < k; j++)
        at[place_in_panel(to, lane, j)] = element_16(w, from, row + j, to);
    }
  }
}

/// Calls work(begin, end) for ranges that cover all panels once. With several NUMA nodes a thread packs the panels first that matmul
/// gives to threads of its node, so their memory is on this node (first touch).
template <class Work>
void split_panels(CpuDevice& cpu, int n, int k, DType to, void* packed, const Work& work) {
  const int n_panels = n_panels_of(n);
  ThreadPool& pool = cpu.pool();
  if (pool.nodes().n_nodes() == 1) {
    split(cpu, n_panels, std::int64_t{n} * k, [&](int begin, int end, int) { work(begin, end); });
    return;
  }
  drop_huge_pages(packed, packed_bytes(to, n, k));
  Turns turns(n_panels, panel_bytes(to, k), pool.n_threads(), 1, pool.nodes().n_threads());
  pool.run([&](int) {
    const int node = pool.nodes().current();
    for (int begin, end; turns.take(node, begin, end);) work(begin, end);
  });
}

void pack(Device& device, const void* w_host, DType from, int n, int k, DType to, void* packed) {
  ensure(n > 0 && k > 0, "pack: n and k must be at least 1");
  ensure(!is_quantised(from) && !is_quantised(to), "pack: quantised weights need pack_quantised");
  split_panels(cpu_of(device), n, k, to, packed, [&](int begin, int end) {
    for (int panel = begin; panel < end; panel++)
      pack_panel(static_cast<const char*>(w_host), from, n, k, to, panel,
                 static_cast<char*>(packed) + panel * panel_bytes(to, k));
  });
}

void pack_quantised(Device& device, const QuantisedRows& w, int n, int k, DType to, void* packed) {
  check_quantised_rows(w, n, k, to);
  std::atomic<bool> exact{true};
  split_panels(cpu_of(device), n, k, to, packed, [&](int begin, int end) {
    for (int panel = begin; panel < end; panel++)
      if (!pack_quantised_panel(w, n, k, to, panel,
                                static_cast<char*>(packed) + panel * panel_bytes(to, k)))
        exact = false;
  });
  ensure(exact, "pack_quantised: the type cannot hold a value of the weights");
}

void matmul(Device& device,
            const PackedMatrix& w,
            const float* x,
            std::int64_t x_stride,
            int n_rows,
            float* y,
            std::int64_t y_stride,
            const float* bias,
            bool add) {
  check_matmul(w, n_rows, x_stride, y_stride);
  if (n_rows == 0) return;
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Products);
  const MatmulKernel& kernel = cpu.kernels.matmul[static_cast<int>(w.dtype)];
  const std::int64_t bytes = kernel.prepared_bytes(n_rows, w.k);
  char* prepared = cpu.shared.at_least(bytes);
  const int n_panels = n_panels_of(w.n);
  const bool cached = cpu.recent.use(w.data, packed_bytes(w.dtype, w.n, w.k));
  const MatmulCall call = {
      w.data, panel_bytes(w.dtype, w.k), w.n, w.k, prepared, n_rows, y, y_stride, bias, add,
      cached};
  const int n_threads = cpu.pool().n_threads();
  const std::int64_t work = std::int64_t{w.n} * w.k * n_rows;
  if (n_threads == 1 || work < 50000) {
    kernel.prepare(x, x_stride, n_rows, w.k, 0, 1, prepared);
    kernel.multiply(call, 0, n_panels);
    return;
  }
  // The caller prepares a few rows alone; all threads prepare many rows before they multiply.
  const bool alone = std::int64_t{n_rows} * w.k <= 4096;
  if (alone) kernel.prepare(x, x_stride, n_rows, w.k, 0, 1, prepared);
  const ThreadNodes& nodes = cpu.pool().nodes();
  Turns turns(n_panels, call.panel_bytes, n_threads, cached ? 2 : 1, nodes.n_threads());
  PhaseParts parts(alone ? 0 : n_threads);
  cpu.pool().run([&](int) {
    parts.finish(
        [&](int part) { kernel.prepare(x, x_stride, n_rows, w.k, part, n_threads, prepared); });
    const int node = nodes.current();
    for (int begin, end; turns.take(node, begin, end);) kernel.multiply(call, begin, end);
  });
}

void embed(
    Device& device, const PackedMatrix& table, const std::int32_t* ids, int n_rows, float* y) {
  for (int r = 0; r < n_rows; r++)
    ensure(ids[r] >= 0 && ids[r] < table.n, "embed: a token is outside the embedding matrix");
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Other);
  split(cpu, n_rows, std::int64_t{n_rows} * table.k, [&](int begin, int end, int) {
    for (int r = begin; r < end; r++) {
      const char* panel = static_cast<const char*>(table.data) +
                          ids[r] / kPanel * panel_bytes(table.dtype, table.k);
      const int lane = ids[r] % kPanel;
      float* to = y + std::int64_t{r} * table.k;
      if (is_quantised(table.dtype)) {
        dequantise_output(panel, table.dtype, table.k, lane, to);
        continue;
      }
      for (int j = 0; j < table.k; j++)
        to[j] = element_as_f32(panel, table.dtype, place_in_panel(table.dtype, lane, j));
    }
  });
}

}  // namespace

void add_matrix_ops(Ops& ops) {
  ops.packed_bytes = packed_bytes;
  ops.pack = pack;
  ops.pack_quantised = pack_quantised;
  ops.matmul = matmul;
  ops.embed = embed;
}

}  // namespace kernels::cpu

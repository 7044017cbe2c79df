// The paged KV cache. A page holds keys [n_kv_heads, head_dim, 64], so that SIMD lanes are positions, and values
// [n_kv_heads, 64, head_dim].
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_times.h"

namespace kernels::cpu {
namespace {

void kv_stage(Device& device,
              const float* x,
              std::int64_t x_stride,
              int n_rows,
              int n_kv_heads,
              int head_dim,
              DType dtype,
              void* staged) {
  const int width = n_kv_heads * head_dim;
  check_stage(n_rows, n_kv_heads, head_dim, x_stride);
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Cache);
  const auto narrow = cpu.kernels.narrow[static_cast<int>(dtype)];
  const std::int64_t row_bytes = std::int64_t{width} * bytes_of(dtype);
  split(cpu, n_rows, std::int64_t{n_rows} * width / 8, [&](int begin, int end, int) {
    for (int r = begin; r < end; r++)
      narrow(x + r * x_stride, width, static_cast<char*>(staged) + r * row_bytes);
  });
}

// Commits one head. Consecutive slots of a page are written together, so each cache line of the keys is visited once.
template <class Element>
void commit_head(const KvLayer& layer,
                 const Element* staged_k,
                 const Element* staged_v,
                 const int* src,
                 const int* page,
                 const int* slot,
                 int n,
                 int head) {
  const int dim = layer.head_dim;
  const auto staged_row = [&](const Element* staged, int i) {
    return staged + (std::int64_t{src[i]} * layer.n_kv_heads + head) * dim;
  };
  const std::int64_t head_offset = std::int64_t{head} * dim * kPageSize;
  for (int begin = 0; begin < n;) {
    int end = begin + 1;
    while (end < n && page[end] == page[begin] && slot[end] == slot[begin] + (end - begin)) end++;
    const std::int64_t page_offset = page[begin] * layer.page_bytes;
    auto* k = reinterpret_cast<Element*>(static_cast<char*>(layer.k) + page_offset) + head_offset;
    auto* v = reinterpret_cast<Element*>(static_cast<char*>(layer.v) + page_offset) + head_offset;
    for (int d = 0; d < dim; d++)
      for (int i = begin; i < end; i++) k[d * kPageSize + slot[i]] = staged_row(staged_k, i)[d];
    for (int i = begin; i < end; i++)
      std::memcpy(v + slot[i] * dim, staged_row(staged_v, i), sizeof(Element) * dim);
    begin = end;
  }
}

void commit_layer(CpuDevice& cpu,
                  const KvLayer& layer,
                  const StagedLayer& staged,
                  const int* src,
                  const int* page,
                  const int* slot,
                  int n) {
  const std::int64_t cost = std::int64_t{n} * layer.n_kv_heads * layer.head_dim;
  split(cpu, layer.n_kv_heads, cost, [&](int begin, int end, int) {
    for (int head = begin; head < end; head++) {
      if (layer.dtype == DType::F32)
        commit_head(layer, static_cast<const float*>(staged.k), static_cast<const float*>(staged.v),
                    src, page, slot, n, head);
      else
        commit_head(layer, static_cast<const std::uint16_t*>(staged.k),
                    static_cast<const std::uint16_t*>(staged.v), src, page, slot, n, head);
    }
  });
}

void kv_commit(Device& device,
               const KvLayer* layers,
               const StagedLayer* staged,
               int n_layers,
               const int* src,
               const int* page,
               const int* slot,
               int n) {
  check_commit(layers, n_layers, src, page, slot, n);
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Cache);
  for (int l = 0; l < n_layers; l++) commit_layer(cpu, layers[l], staged[l], src, page, slot, n);
}

void kv_copy_page(Device&, const KvLayer& layer, int from, int to) {
  const std::int64_t bytes = checked_page_bytes(layer.dtype, layer.n_kv_heads, layer.head_dim);
  for (void* pages : {layer.k, layer.v}) {
    char* base = static_cast<char*>(pages);
    if (from != to)
      std::memcpy(base + to * layer.page_bytes, base + from * layer.page_bytes, bytes);
  }
}

float as_f32(float x, DType) {
  return x;
}
float as_f32(std::uint16_t x, DType dtype) {
  return dtype == DType::F16 ? f32_from_f16(x) : f32_from_bf16(x);
}

template <class Element>
void read_position(const KvLayer& layer, int page, int slot, float* k, float* v) {
  const std::int64_t offset = page * layer.page_bytes;
  const auto* keys = reinterpret_cast<const Element*>(static_cast<const char*>(layer.k) + offset);
  const auto* values = reinterpret_cast<const Element*>(static_cast<const char*>(layer.v) + offset);
  const int dim = layer.head_dim;
  for (int head = 0; head < layer.n_kv_heads; head++) {
    const std::int64_t base = std::int64_t{head} * dim * kPageSize;
    for (int d = 0; d < dim; d++) {
      k[head * dim + d] = as_f32(keys[base + d * kPageSize + slot], layer.dtype);
      v[head * dim + d] = as_f32(values[base + slot * dim + d], layer.dtype);
    }
  }
}

void kv_read(Device&, const KvLayer& layer, const int* pages, int n, float* k, float* v) {
  const std::int64_t width = std::int64_t{layer.n_kv_heads} * layer.head_dim;
  for (int pos = 0; pos < n; pos++) {
    const auto read =
        layer.dtype == DType::F32 ? read_position<float> : read_position<std::uint16_t>;
    read(layer, pages[pos / kPageSize], pos % kPageSize, k + pos * width, v + pos * width);
  }
}

}  // namespace

void add_cache_ops(Ops& ops) {
  ops.page_bytes = checked_page_bytes;
  ops.kv_stage = kv_stage;
  ops.kv_commit = kv_commit;
  ops.kv_copy_page = kv_copy_page;
  ops.kv_read = kv_read;
}

}  // namespace kernels::cpu

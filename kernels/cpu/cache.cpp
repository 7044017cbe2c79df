// The paged KV cache. A page holds keys [n_kv_heads, head_dim, 64], so that SIMD lanes are positions, and values
// [n_kv_heads, 64, head_dim]. In a cache of type Q8_0 each head has its int8 in this order and then its scales in f16: keys
// [head_dim / 32, 64], values [head_dim / 32, 64]; a head of a staged row has int8 [head_dim] and scales [head_dim / 32].
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_times.h"
#include "kernels/error.h"

namespace kernels::cpu {
namespace {

std::int64_t page_bytes(DType dtype, int n_kv_heads, int head_dim) {
  if (dtype != DType::Q8_0) return checked_page_bytes(dtype, n_kv_heads, head_dim);
  ensure(n_kv_heads > 0 && head_dim > 0, "page_bytes: n_kv_heads and head_dim must be at least 1");
  return std::int64_t{kPageSize} * n_kv_heads * cache_bytes(dtype, head_dim);
}

// Rounds a group of values to int8 multiples of a scale, the largest magnitude / 127 as f16. If a value is not finite, neither is the scale.
void quantise_group(const float* x, std::int8_t* to, std::uint16_t* scale_to) {
  float most = 0, check = 0;
  for (int i = 0; i < kCacheGroup; i++) {
    most = std::max(most, std::fabs(x[i]));
    check += x[i] * 0;  // NaN if a value is not finite
  }
  *scale_to = f16_from_f32(check == 0 ? most / 127 : std::numeric_limits<float>::quiet_NaN());
  const float scale = f32_from_f16(*scale_to);
  const float inverse = scale > 0 && scale < 65536 ? 1 / scale : 0;
  for (int i = 0; i < kCacheGroup; i++)
    to[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(x[i] * inverse), -127.0f, 127.0f));
}

void quantise_head(const float* x, int head_dim, char* to) {
  auto* values = reinterpret_cast<std::int8_t*>(to);
  auto* scales = reinterpret_cast<std::uint16_t*>(to + head_dim);
  for (int g = 0; g < head_dim / kCacheGroup; g++)
    quantise_group(x + g * kCacheGroup, values + g * kCacheGroup, scales + g);
}

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
  const std::int64_t head_bytes = cache_bytes(dtype, head_dim);
  const auto stage_row = [&](const float* from, char* to) {
    if (dtype != DType::Q8_0) return cpu.kernels.narrow[static_cast<int>(dtype)](from, width, to);
    for (int head = 0; head < n_kv_heads; head++)
      quantise_head(from + head * head_dim, head_dim, to + head * head_bytes);
  };
  split(cpu, n_rows, std::int64_t{n_rows} * width / 8, [&](int begin, int end, int) {
    for (int r = begin; r < end; r++)
      stage_row(x + r * x_stride, static_cast<char*>(staged) + r * n_kv_heads * head_bytes);
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

void commit_q8_head(const KvLayer& layer,
                    const StagedLayer& staged,
                    const int* src,
                    const int* page,
                    const int* slot,
                    int n,
                    int head) {
  const int dim = layer.head_dim, n_groups = dim / kCacheGroup;
  const std::int64_t head_bytes = cache_bytes(DType::Q8_0, dim);
  for (int i = 0; i < n; i++) {
    const std::int64_t from = (std::int64_t{src[i]} * layer.n_kv_heads + head) * head_bytes;
    const std::int64_t to = page[i] * layer.page_bytes + head * kPageSize * head_bytes;
    const char *k = static_cast<const char*>(staged.k) + from,
               *v = static_cast<const char*>(staged.v) + from;
    char *k_page = static_cast<char*>(layer.k) + to, *v_page = static_cast<char*>(layer.v) + to;
    for (int d = 0; d < dim; d++) k_page[d * kPageSize + slot[i]] = k[d];
    std::memcpy(v_page + slot[i] * dim, v, dim);
    for (int g = 0; g < n_groups; g++) {
      const int at = kPageSize * dim + (g * kPageSize + slot[i]) * 2;
      std::memcpy(k_page + at, k + dim + 2 * g, 2);
      std::memcpy(v_page + at, v + dim + 2 * g, 2);
    }
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
      if (layer.dtype == DType::Q8_0)
        commit_q8_head(layer, staged, src, page, slot, n, head);
      else if (layer.dtype == DType::F32)
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
  const std::int64_t bytes = page_bytes(layer.dtype, layer.n_kv_heads, layer.head_dim);
  for (void* pages : {layer.k, layer.v}) {
    char* base = static_cast<char*>(pages);
    if (from != to)
      std::memcpy(base + to * layer.page_bytes, base + from * layer.page_bytes, bytes);
  }
}

float half_at(const std::int8_t* halves, int i) {
  std::uint16_t bits;
  std::memcpy(&bits, halves + 2 * i, 2);
  return f32_from_f16(bits);
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

void read_q8_position(const KvLayer& layer, int page, int slot, float* k, float* v) {
  const int dim = layer.head_dim;
  const std::int64_t head_bytes = kPageSize * cache_bytes(DType::Q8_0, dim);
  for (int head = 0; head < layer.n_kv_heads; head++) {
    const std::int64_t at = page * layer.page_bytes + head * head_bytes;
    const auto* keys = static_cast<const std::int8_t*>(layer.k) + at;
    const auto* values = static_cast<const std::int8_t*>(layer.v) + at;
    for (int d = 0; d < dim; d++) {
      const int scale = d / kCacheGroup * kPageSize + slot;
      k[head * dim + d] =
          static_cast<float>(keys[d * kPageSize + slot]) * half_at(keys + kPageSize * dim, scale);
      v[head * dim + d] =
          static_cast<float>(values[slot * dim + d]) * half_at(values + kPageSize * dim, scale);
    }
  }
}

void kv_read(Device&, const KvLayer& layer, const int* pages, int n, float* k, float* v) {
  const std::int64_t width = std::int64_t{layer.n_kv_heads} * layer.head_dim;
  for (int pos = 0; pos < n; pos++) {
    const auto read = layer.dtype == DType::Q8_0  ? read_q8_position
                      : layer.dtype == DType::F32 ? read_position<float>
                                                  : read_position<std::uint16_t>;
    read(layer, pages[pos / kPageSize], pos % kPageSize, k + pos * width, v + pos * width);
  }
}

}  // namespace

void add_cache_ops(Ops& ops) {
  ops.page_bytes = page_bytes;
  ops.kv_stage = kv_stage;
  ops.kv_commit = kv_commit;
  ops.kv_copy_page = kv_copy_page;
  ops.kv_read = kv_read;
}

}  // namespace kernels::cpu

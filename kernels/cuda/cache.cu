// The paged KV cache. A page of keys, or of values, is [n_kv_heads, 64, head_dim]: the vector of one position and head is
// contiguous for 16-byte copies.
#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/row_kernels.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kCacheThreads = 128;

/// Index of element (head, slot, 0) in a page.
__device__ inline std::int64_t in_page(int head, int slot, int head_dim) {
  return (std::int64_t{head} * kPageSize + slot) * head_dim;
}

// Rounds rows to the cache's type.  x [rows, width] with x_stride, staged [rows, width]
template <class Store>
__global__ void __launch_bounds__(kCacheThreads)
    stage_rows(const float* x, std::int64_t x_stride, int width, typename Store::Element* staged) {
  let_next_begin();
  wait_for_earlier();
  const std::int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += kCacheThreads)
    staged[row * width + i] = Store::narrow(x[row * x_stride + i]);
}

/// Staged keys and values, [n_rows, n_kv_heads, head_dim] each.
struct StageCall {
  void* k;
  void* v;
  std::int64_t n_kv_heads;
};

// Rotates queries and keys (the call's n_heads heads, keys last) in place and stages keys and values. A row holds
// queries, keys, values. Launched with rope_block and rope_grid for all of its heads.
template <class Store>
__global__ void __launch_bounds__(kRopeThreads) rope_and_stage(RopeCall call, StageCall staged) {
  let_next_begin();
  wait_for_earlier();
  using Element = typename Store::Element;
  const auto n_kv = static_cast<int>(staged.n_kv_heads);
  const auto head = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (head >= call.n_heads + n_kv) return;
  const bool is_rotated = head < call.n_heads, in_fours = heads_in_fours(call);
  const int half = call.head_dim / 2;
  const int kv_head = is_rotated ? head - (call.n_heads - n_kv) : head - call.n_heads;
  float* low = call.x + blockIdx.x * call.x_stride + std::int64_t{head} * call.head_dim;
  auto* to = static_cast<Element*>(is_rotated ? staged.k : staged.v) +
             (std::int64_t{blockIdx.x} * n_kv + kv_head) * call.head_dim;
  const bool to_fours = lie_in_fours(half, is_rotated ? staged.k : staged.v);
  for (int i = 4 * threadIdx.x; i < half; i += 4 * blockDim.x) {
    const HeadHalves own =
        is_rotated ? rotate_halves(call, low, i, in_fours) : load_halves(call, low, i, in_fours);
    if (kv_head < 0) continue;
    store_four_as<Store>(to + i, own.low, half - i, to_fours);
    store_four_as<Store>(to + half + i, own.high, half - i, to_fours);
  }
}

/// Staged rows and pages of a layer.
struct CommitLayer {
  const void *staged_k, *staged_v;
  char *k, *v;
};

/// Layers that are committed together. They are an argument of the launch, so the device sees the memory that it uses.
/// Every CUDA version allows 4 KiB of arguments.
struct CommitLayers {
  static constexpr int kMost = 120;
  CommitLayer of[kMost];
};
static_assert(sizeof(CommitLayers) + 64 <= 4096);

// Copies staged rows to their slots.  list [3, n]: rows, pages, slots
// grid: one block per row, head and layer
template <class Element>
__global__ void __launch_bounds__(kCacheThreads) commit_rows(CommitLayers layers,
                                                             std::int64_t bytes_of_page,
                                                             int n_kv_heads,
                                                             int head_dim,
                                                             const int* list,
                                                             int n) {
  let_next_begin();
  wait_for_earlier();
  const CommitLayer layer = layers.of[blockIdx.z];
  const auto* staged_k = static_cast<const Element*>(layer.staged_k);
  const auto* staged_v = static_cast<const Element*>(layer.staged_v);
  const int i = blockIdx.x, head = blockIdx.y;
  const std::int64_t from = (std::int64_t{list[i]} * n_kv_heads + head) * head_dim;
  const std::int64_t page = std::int64_t{list[n + i]} * bytes_of_page;
  const std::int64_t to = in_page(head, list[2 * n + i], head_dim);
  auto* to_k = reinterpret_cast<Element*>(layer.k + page) + to;
  auto* to_v = reinterpret_cast<Element*>(layer.v + page) + to;
  for (int d = threadIdx.x; d < head_dim; d += kCacheThreads) {
    to_k[d] = staged_k[from + d];
    to_v[d] = staged_v[from + d];
  }
}

// Copies 4 bytes per thread; the bytes of a page are a multiple of 4.
__global__ void __launch_bounds__(kCacheThreads) copy_words(
    const unsigned* k, const unsigned* v, unsigned* to_k, unsigned* to_v, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kCacheThreads + threadIdx.x;
  if (i >= n) return;
  to_k[i] = k[i];
  to_v[i] = v[i];
}

// Reads positions of a sequence as f32, [n, n_kv_heads, head_dim].  grid: one block per position and head
template <class Store>
__global__ void __launch_bounds__(kCacheThreads) read_positions(const char* k,
                                                                const char* v,
                                                                std::int64_t bytes_of_page,
                                                                int head_dim,
                                                                const int* pages,
                                                                float* to_k,
                                                                float* to_v) {
  using Element = typename Store::Element;
  const int pos = blockIdx.x, head = blockIdx.y;
  const std::int64_t page = std::int64_t{pages[pos / kPageSize]} * bytes_of_page;
  const std::int64_t from = in_page(head, pos % kPageSize, head_dim);
  const std::int64_t to = (std::int64_t{pos} * gridDim.y + head) * head_dim;
  for (int d = threadIdx.x; d < head_dim; d += kCacheThreads) {
    to_k[to + d] = Store::widen(reinterpret_cast<const Element*>(k + page)[from + d]);
    to_v[to + d] = Store::widen(reinterpret_cast<const Element*>(v + page)[from + d]);
  }
}

template <class Store>
void stage_as(CudaDevice& device,
              const float* x,
              std::int64_t x_stride,
              int n_rows,
              int n_kv_heads,
              int head_dim,
              void* staged) {
  const int width = n_kv_heads * head_dim;
  device.launch_early("kv_stage", stage_rows<Store>, n_rows, kCacheThreads, 0, x, x_stride, width,
                      static_cast<typename Store::Element*>(staged));
}

void kv_stage(Device& device,
              const float* x,
              std::int64_t x_stride,
              int n_rows,
              int n_kv_heads,
              int head_dim,
              DType dtype,
              void* staged) {
  check_stage(n_rows, n_kv_heads, head_dim, x_stride);
  if (n_rows == 0) return;
  const auto stage = dtype == DType::F32   ? stage_as<StoreF32>
                     : dtype == DType::F16 ? stage_as<StoreF16>
                                           : stage_as<StoreBf16>;
  stage(cuda_of(device), x, x_stride, n_rows, n_kv_heads, head_dim, staged);
}

void rope_kv_stage(Device& device,
                   float* qkv,
                   std::int64_t stride,
                   int n_rows,
                   int n_heads,
                   int n_kv_heads,
                   int head_dim,
                   const int* pos,
                   const float* table,
                   DType dtype,
                   void* staged_k,
                   void* staged_v) {
  check_rope_kv_stage(n_rows, n_heads, n_kv_heads, head_dim, stride);
  if (n_rows == 0) return;
  const RopeCall rope = {qkv, stride, pos, table, n_rows, n_heads + n_kv_heads, head_dim};
  const StageCall staged = {staged_k, staged_v, n_kv_heads};
  const auto kernel = dtype == DType::F32   ? rope_and_stage<StoreF32>
                      : dtype == DType::F16 ? rope_and_stage<StoreF16>
                                            : rope_and_stage<StoreBf16>;
  cuda_of(device).launch_early("rope_and_stage", kernel, rope_grid(rope, n_heads + 2 * n_kv_heads),
                               rope_block(head_dim), 0, rope, staged);
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
  if (n == 0 || n_layers == 0) return;
  std::vector<int> list(src, src + n);
  list.insert(list.end(), page, page + n);
  list.insert(list.end(), slot, slot + n);
  CudaDevice& cuda = cuda_of(device);
  const int* device_list = cuda.device_list(Use::Commit, list);
  const KvLayer& shape = layers[0];
  const auto commit = shape.dtype == DType::F32 ? commit_rows<float> : commit_rows<std::uint16_t>;
  for (int first = 0; first < n_layers; first += CommitLayers::kMost) {
    const int n_together = std::min(CommitLayers::kMost, n_layers - first);
    CommitLayers together = {};
    for (int l = 0; l < n_together; l++) {
      const KvLayer& to = layers[first + l];
      together.of[l] = {staged[first + l].k, staged[first + l].v, static_cast<char*>(to.k),
                        static_cast<char*>(to.v)};
    }
    cuda.launch_early("kv_commit", commit,
                      dim3(static_cast<unsigned>(n), static_cast<unsigned>(shape.n_kv_heads),
                           static_cast<unsigned>(n_together)),
                      kCacheThreads, 0, together, shape.page_bytes, shape.n_kv_heads,
                      shape.head_dim, device_list, n);
  }
}

void kv_copy_page(Device& device, const KvLayer& layer, int from, int to) {
  if (from == to) return;
  const std::int64_t n = checked_page_bytes(layer.dtype, layer.n_kv_heads, layer.head_dim) / 4;
  const auto page = [&](void* pages, int id) {
    return reinterpret_cast<unsigned*>(static_cast<char*>(pages) + id * layer.page_bytes);
  };
  cuda_of(device).launch("kv_copy_page", copy_words, blocks_for(n, kCacheThreads), kCacheThreads, 0,
                         page(layer.k, from), page(layer.v, from), page(layer.k, to),
                         page(layer.v, to), n);
}

void kv_read(Device& device, const KvLayer& layer, const int* pages, int n, float* k, float* v) {
  if (n == 0) return;
  CudaDevice& cuda = cuda_of(device);
  const std::int64_t n_floats = std::int64_t{n} * layer.n_kv_heads * layer.head_dim;
  auto* read = static_cast<float*>(cuda.scratch(Use::Rows, 2 * n_floats * 4));
  const int* device_pages =
      cuda.device_list(Use::Commit, {pages, static_cast<std::size_t>(blocks_for(n, kPageSize))});
  const auto kernel = layer.dtype == DType::F32   ? read_positions<StoreF32>
                      : layer.dtype == DType::F16 ? read_positions<StoreF16>
                                                  : read_positions<StoreBf16>;
  cuda.launch(
      "kv_read", kernel, dim3(static_cast<unsigned>(n), static_cast<unsigned>(layer.n_kv_heads)),
      kCacheThreads, 0, static_cast<const char*>(layer.k), static_cast<const char*>(layer.v),
      layer.page_bytes, layer.head_dim, device_pages, read, read + n_floats);
  cuda.download(k, read, n_floats * 4);
  cuda.download(v, read + n_floats, n_floats * 4);
}

}  // namespace

void add_cache_ops(Ops& ops) {
  ops.page_bytes = checked_page_bytes;
  ops.kv_stage = kv_stage;
  ops.rope_kv_stage = rope_kv_stage;
  ops.kv_commit = kv_commit;
  ops.kv_copy_page = kv_copy_page;
  ops.kv_read = kv_read;
}

}  // namespace kernels::DECOSCOPE_GPU

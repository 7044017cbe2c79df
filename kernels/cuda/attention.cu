// softmax(q k^T) v in position space. Chunk c is positions [64 c, 64 c + 64) wherever they are
// stored; every chunk is a block's, and a second kernel joins a row's chunks in order.
//   a chunk    one score a position, summed over head_dim in order; weights relative to the largest
//              score the row sees in it; values summed in position order
//   a join     the chunks' sums rescaled to the largest score so far, in chunk order
// What a row does not see is not touched, so storage, company and the other rows change no bit.
#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cuda/attention_join.cuh"
#include "kernels/cuda/attention_lists.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr int kGroupRows = 8;  // rows of one sequence that share a chunk's keys and values
constexpr std::int64_t kMostVectorBytes = 88 << 10;  // every GPU has 99 KiB a block

__host__ __device__ inline int first_position(int pos, int window) {
  return window > 0 && pos >= window ? pos - window + 1 : 0;
}

/// 16 bytes as f32.
template <class Store>
struct Vector {
  static constexpr int kN = 16 / sizeof(typename Store::Element);
  float x[kN];
  __device__ explicit Vector(const typename Store::Element* from) {
    union {
      uint4 bytes;
      typename Store::Element elements[kN];
    } loaded;
    loaded.bytes = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < kN; i++) x[i] = Store::widen(loaded.elements[i]);
  }
};

/// In order; whether 16 bytes are read at once changes no bit.
template <class Store>
__device__ inline float dot(const float* q,
                            const typename Store::Element* key,
                            int head_dim,
                            bool in_vectors) {
  constexpr int kN = Vector<Store>::kN;
  float sum = 0;
  int d = 0;
  if (in_vectors) {
    for (; d < head_dim; d += kN) {
      const Vector<Store> part(key + d);
#pragma unroll
      for (int i = 0; i < kN; i++) sum = fmaf(q[d + i], part.x[i], sum);
    }
  }
  for (; d < head_dim; d++) sum = fmaf(q[d], Store::widen(key[d]), sum);
  return sum;
}

/// How a block's dynamic shared memory is cut. Keys and values too wide for it stay in their page.
struct ChunkMemory {
  bool holds_vectors;
  int pitch;  // elements from one position's vector to the next, not a multiple of all banks
  std::int64_t values, queries, weights, bytes;
  __host__ __device__ ChunkMemory(int head_dim, int element_bytes) {
    const int row = (head_dim * element_bytes + 15) / 16 * 16 + 16;
    holds_vectors = std::int64_t{row} * kPageSize * 2 <= kMostVectorBytes;
    pitch = holds_vectors ? row / element_bytes : head_dim;
    values = holds_vectors ? std::int64_t{row} * kPageSize : 0;
    queries = 2 * values;
    const int query = (head_dim * 4 + 15) / 16 * 16;
    weights = queries + kAttentionWarps * query;
    bytes = weights + kAttentionWarps * kPageSize * 4;
  }
};

/// A page's keys and values of the block's head.
template <class Store>
struct HeadPage {
  using Element = typename Store::Element;
  const Element *k, *v;
  __device__ HeadPage(const AttentionCall& call, int page) {
    const std::int64_t from = std::int64_t{page} * call.page_bytes;
    const std::int64_t head = std::int64_t{blockIdx.y} * kPageSize * call.head_dim;
    k = reinterpret_cast<const Element*>(call.k_pages + from) + head;
    v = reinterpret_cast<const Element*>(call.v_pages + from) + head;
  }
};

/// The cached part of a chunk from its page to shared memory.
template <class Store>
__device__ inline void fetch_page(const AttentionCall& call,
                                  const HeadPage<Store>& page,
                                  int n_cached,
                                  const ChunkMemory& memory,
                                  bool in_vectors) {
  using Element = typename Store::Element;
  const Element* pages[2] = {page.k, page.v};
  unsigned char* shared = dynamic_shared();
  for (int which = 0; which < 2; which++) {
    auto* to = reinterpret_cast<Element*>(shared + which * memory.values);
    if (in_vectors) {
      constexpr int kN = Vector<Store>::kN;
      const int n = call.head_dim / kN;
      for (int i = threadIdx.x; i < n_cached * n; i += kAttentionThreads)
        copy_async_16(to + i / n * memory.pitch + i % n * kN, pages[which] + std::int64_t{i} * kN);
    } else {
      for (int i = threadIdx.x; i < n_cached * call.head_dim; i += kAttentionThreads)
        to[i / call.head_dim * memory.pitch + i % call.head_dim] = pages[which][i];
    }
  }
  copy_async_commit();
  copy_async_wait(0);
}

/// Where a position's vector lies for one row: with the cached ones of the chunk (in shared memory,
/// or in their page), or among the staged.
template <class Store>
struct Vectors {
  using Element = typename Store::Element;
  const Element* cached;
  int pitch, n_cached;
  const Element* staged;      // of the head
  std::int64_t staged_pitch;  // elements from row to row
  const int* chain;           // by slot
  __device__ const Element* at(int slot) const {
    return slot < n_cached ? cached + slot * pitch : staged + chain[slot] * staged_pitch;
  }
};

/// One query over what it sees of a chunk, [lo, hi]; by one warp.
template <class Store>
__device__ inline void attend_query(const float* q,
                                    float* weights,
                                    const Vectors<Store>& keys,
                                    const Vectors<Store>& values,
                                    int lo,
                                    int hi,
                                    int head_dim,
                                    float scale,
                                    bool in_vectors,
                                    float* partial) {
  const int lane = threadIdx.x % 32;
  float score[2];
  for (int i = 0; i < 2; i++) {
    const int slot = lane + 32 * i;
    score[i] = slot >= lo && slot <= hi ? dot<Store>(q, keys.at(slot), head_dim, in_vectors) * scale
                                        : -kInfinity;
  }
  const float top = over_warp(Larger()(score[0], score[1]), Larger());
  for (int i = 0; i < 2; i++) {
    score[i] = exp_f32(score[i] - top);
    weights[lane + 32 * i] = score[i];
  }
  const float sum = over_warp(score[0] + score[1], Plus());
  __syncwarp();
  for (int d = lane; d < head_dim; d += 32) {
    float value = 0;
    for (int slot = lo; slot <= hi; slot++)
      value = fmaf(weights[slot], Store::widen(values.at(slot)[d]), value);
    partial[2 + d] = value;
  }
  if (lane == 0) {
    partial[0] = top;
    partial[1] = sum;
  }
}

// grid: (items, kv heads); a warp is a query at a time
template <class Store>
__global__ void __launch_bounds__(kAttentionThreads) attend_chunks(AttentionCall call) {
  let_next_begin();
  wait_for_earlier();
  using Element = typename Store::Element;
  const int group = call.items[2 * blockIdx.x], chunk = call.items[2 * blockIdx.x + 1];
  const int head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = call.groups[group], end = call.groups[group + 1], base = chunk * kPageSize;
  const int seq = call.seq[call.rows[first]], prefix = call.prefix_len[seq];
  const int head_dim = call.head_dim;
  const bool in_vectors = head_dim % Vector<Store>::kN == 0;
  const ChunkMemory memory(head_dim, sizeof(Element));
  int n_cached = prefix - base;
  n_cached = n_cached < 0 ? 0 : n_cached > kPageSize ? kPageSize : n_cached;
  unsigned char* shared = dynamic_shared();
  auto* cached_k = reinterpret_cast<const Element*>(shared);
  auto* cached_v = reinterpret_cast<const Element*>(shared + memory.values);
  if (n_cached > 0) {
    const HeadPage<Store> page(call, call.pages[call.page_begin[seq] + chunk]);
    if (memory.holds_vectors) {
      fetch_page<Store>(call, page, n_cached, memory, in_vectors);
    } else {
      cached_k = page.k;
      cached_v = page.v;
    }
  }
  __syncthreads();

  const int q_floats = (head_dim + 3) / 4 * 4;
  float* q = reinterpret_cast<float*>(shared + memory.queries) + warp * q_floats;
  float* weights = reinterpret_cast<float*>(shared + memory.weights) + warp * kPageSize;
  const std::int64_t staged_pitch = std::int64_t{call.n_kv_heads} * head_dim;
  const std::int64_t staged_head = std::int64_t{head} * head_dim;
  const int n_rep = call.n_heads / call.n_kv_heads;
  for (int query = warp; query < (end - first) * n_rep; query += kAttentionWarps) {
    const int listed = first + query / n_rep, row = call.rows[listed];
    const int query_head = head * n_rep + query % n_rep;
    const int from = first_position(call.pos[row], call.window);
    const int lo = from > base ? from - base : 0;
    int hi = call.pos[row] - base;
    hi = hi < kPageSize - 1 ? hi : kPageSize - 1;
    if (lo > hi) continue;
    __syncwarp();
    for (int d = lane; d < head_dim; d += 32)
      q[d] = call.q[row * call.q_stride + std::int64_t{query_head} * head_dim + d];
    __syncwarp();
    const int* chain = call.chain + call.chain_begin[row] + base - prefix;
    const Vectors<Store> keys = {
        cached_k,     memory.pitch,
        n_cached,     static_cast<const Element*>(call.staged_k) + staged_head,
        staged_pitch, chain};
    const Vectors<Store> values = {
        cached_v,     memory.pitch,
        n_cached,     static_cast<const Element*>(call.staged_v) + staged_head,
        staged_pitch, chain};
    const std::int64_t at = call.chunk_base[listed] + chunk - from / kPageSize;
    attend_query<Store>(q, weights, keys, values, lo, hi, head_dim, call.scale, in_vectors,
                        call.partials + (at * call.n_heads + query_head) * (2 + head_dim));
  }
}

// softmax(q k) of one head of one row in double, of which the chain's part is kept.
// grid: a block a head; scores [n_heads, n], weights [n_heads, n_chain]
template <class Store>
__global__ void __launch_bounds__(kAttentionThreads)
    weigh_positions(AttentionCall call, int row, double* scores, double* weights) {
  using Element = typename Store::Element;
  const int head = blockIdx.x, kv_head = head / (call.n_heads / call.n_kv_heads);
  const int seq = call.seq[row], prefix = call.prefix_len[seq], n = call.pos[row] + 1;
  const int first = first_position(call.pos[row], call.window), head_dim = call.head_dim;
  const int* chain = call.chain + call.chain_begin[row] - prefix;  // by position
  const float* q = call.q + std::int64_t{head} * head_dim;
  double* score = scores + std::int64_t{head} * n;
  double top = -kInfinity;
  for (int p = first + static_cast<int>(threadIdx.x); p < n; p += kAttentionThreads) {
    const Element* key = p < prefix
                             ? reinterpret_cast<const Element*>(
                                   call.k_pages + call.pages[call.page_begin[seq] + p / kPageSize] *
                                                      call.page_bytes) +
                                   (std::int64_t{kv_head} * kPageSize + p % kPageSize) * head_dim
                             : static_cast<const Element*>(call.staged_k) +
                                   (std::int64_t{chain[p]} * call.n_kv_heads + kv_head) * head_dim;
    double sum = 0;
    for (int d = 0; d < head_dim; d++) sum += double{q[d]} * double{Store::widen(key[d])};
    score[p] = sum;
    top = Larger()(top, sum);
  }
  top = over_block<kAttentionThreads>(top, Larger());
  double sum = 0;
  for (int p = first + static_cast<int>(threadIdx.x); p < n; p += kAttentionThreads)
    sum += score[p] = exp((score[p] - top) * call.scale);
  sum = over_block<kAttentionThreads>(sum, Plus());
  for (int p = prefix + static_cast<int>(threadIdx.x); p < n; p += kAttentionThreads)
    weights[std::int64_t{head} * (n - prefix) + p - prefix] = p < first ? 0 : score[p] / sum;
}

// grid: a thread an element of the chain; heads in order
__global__ void __launch_bounds__(kAttentionThreads)
    mean_over_heads(const double* weights, int n_heads, int n_chain, float* mean) {
  const int j = blockIdx.x * kAttentionThreads + threadIdx.x;
  if (j >= n_chain) return;
  double sum = 0;
  for (int head = 0; head < n_heads; head++) sum += weights[std::int64_t{head} * n_chain + j];
  mean[j] = static_cast<float>(sum / n_heads);
}

// ---- the host's side

void point_at_plan(AttentionCall& call, const AttentionLists& lists) {
  const int* told = lists.there;
  const PlanPlaces& at = lists.plan();
  call.seq = told + at.seq;
  call.pos = told + at.pos;
  call.chain_begin = told + at.chain_begin;
  call.prefix_len = told + at.prefix_len;
  call.page_begin = told + at.page_begin;
  call.pages = told + at.pages;
  call.chain = told + at.chain;
}

/// Rows in passes, with lists of their own each.
struct PassOfRows {
  std::vector<int> rows, chunk_base{0}, groups{0}, items;
};

// Groups of a pass are made of rows of one sequence that follow one another in its list.
class Passes {
 public:
  Passes(const RowsPlan& plan, std::int64_t most_chunks) : plan_(plan), most_chunks_(most_chunks) {
    std::vector<int> order(static_cast<std::size_t>(plan.n_rows));
    for (int r = 0; r < plan.n_rows; r++) order[static_cast<std::size_t>(r)] = r;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return plan.seq[a] < plan.seq[b]; });
    for (const int row : order) add(row);
    close_group();
  }
  const std::vector<PassOfRows>& all() const { return all_; }

 private:
  int first_chunk(int row) const {
    return first_position(plan_.pos[row], plan_.sliding_window) / kPageSize;
  }
  int last_chunk(int row) const { return plan_.pos[row] / kPageSize; }

  void add(int row) {
    const int n_chunks = last_chunk(row) - first_chunk(row) + 1;
    if (all_.empty() || all_.back().chunk_base.back() + n_chunks > most_chunks_) {
      close_group();
      all_.emplace_back();
    }
    PassOfRows& pass = all_.back();
    const auto n_in_group = static_cast<int>(pass.rows.size()) - pass.groups.back();
    if (n_in_group == kGroupRows ||
        (n_in_group > 0 && plan_.seq[pass.rows.back()] != plan_.seq[row]))
      close_group();
    pass.rows.push_back(row);
    pass.chunk_base.push_back(pass.chunk_base.back() + n_chunks);
  }
  void close_group() {
    if (all_.empty()) return;
    PassOfRows& pass = all_.back();
    const int begin = pass.groups.back(), end = static_cast<int>(pass.rows.size());
    if (begin == end) return;
    int first = first_chunk(pass.rows[static_cast<std::size_t>(begin)]), last = 0;
    for (int i = begin; i < end; i++) {
      first = std::min(first, first_chunk(pass.rows[static_cast<std::size_t>(i)]));
      last = std::max(last, last_chunk(pass.rows[static_cast<std::size_t>(i)]));
    }
    const auto group = static_cast<int>(pass.groups.size()) - 1;
    for (int chunk = first; chunk <= last; chunk++)
      pass.items.insert(pass.items.end(), {group, chunk});
    pass.groups.push_back(end);
  }

  const RowsPlan& plan_;
  std::int64_t most_chunks_;
  std::vector<PassOfRows> all_;
};

template <class Store>
void run_pass(CudaDevice& cuda, const AttentionCall& call, const AttentionPass& pass) {
  const ChunkMemory memory(call.head_dim, sizeof(typename Store::Element));
  cuda.launch_early(
      "attention", attend_chunks<Store>,
      dim3(static_cast<unsigned>(pass.n_items), static_cast<unsigned>(call.n_kv_heads)),
      kAttentionThreads, static_cast<std::size_t>(memory.bytes), call);
  cuda.launch_early("attention_join", join_chunks,
                    dim3(static_cast<unsigned>(pass.n_rows), static_cast<unsigned>(call.n_heads)),
                    join_threads(call.head_dim), 0, call);
}

/// What a row leaves of a chunk for the join.
std::int64_t floats_a_chunk_of(int n_heads, int head_dim) {
  return std::int64_t{n_heads} * (2 + head_dim);
}

AttentionCall call_of(const KvLayer& layer,
                      const RowsPlan& plan,
                      const float* q,
                      const void* staged_k,
                      int n_heads,
                      float scale) {
  AttentionCall call = {};
  call.k_pages = static_cast<const char*>(layer.k);
  call.v_pages = static_cast<const char*>(layer.v);
  call.page_bytes = layer.page_bytes;
  call.n_kv_heads = layer.n_kv_heads;
  call.head_dim = layer.head_dim;
  call.n_heads = n_heads;
  call.scale = scale;
  call.window = plan.sliding_window;
  call.q = q;
  call.staged_k = staged_k;
  return call;
}

void attention(Device& device,
               const KvLayer& layer,
               const RowsPlan& plan,
               const float* q,
               std::int64_t q_stride,
               const void* staged_k,
               const void* staged_v,
               int n_heads,
               float scale,
               float* out,
               std::int64_t out_stride) {
  if (plan.n_rows == 0) return;
  check_attention(layer, plan, n_heads);
  CudaDevice& cuda = cuda_of(device);
  AttentionCall call = call_of(layer, plan, q, staged_k, n_heads, scale);
  call.q_stride = q_stride;
  call.staged_v = staged_v;
  call.out = out;
  call.out_stride = out_stride;
  const std::int64_t floats_a_chunk = floats_a_chunk_of(n_heads, layer.head_dim);
  const AttentionLists& lists = cuda.attention_plans().of(cuda, plan, floats_a_chunk);
  point_at_plan(call, lists);
  call.partials =
      static_cast<float*>(cuda.scratch(Use::Partials, lists.n_chunks() * floats_a_chunk * 4));
  const auto run = layer.dtype == DType::F32   ? run_pass<StoreF32>
                   : layer.dtype == DType::F16 ? run_pass<StoreF16>
                                               : run_pass<StoreBf16>;
  for (const AttentionPass& pass : lists.passes()) {
    call.rows = lists.there + pass.rows;
    call.chunk_base = lists.there + pass.chunk_base;
    call.groups = lists.there + pass.groups;
    call.items = lists.there + pass.items;
    run(cuda, call, pass);
  }
}

void attention_weights(Device& device,
                       const KvLayer& layer,
                       const RowsPlan& plan,
                       int row,
                       const float* q,
                       const void* staged_k,
                       int n_heads,
                       float scale,
                       float* mean) {
  check_attention_weights(plan, row, scale);
  CudaDevice& cuda = cuda_of(device);
  AttentionCall call = call_of(layer, plan, q, staged_k, n_heads, scale);
  point_at_plan(call,
                cuda.attention_plans().of(cuda, plan, floats_a_chunk_of(n_heads, layer.head_dim)));
  const int n = plan.pos[row] + 1, n_chain = plan.chain_begin[row + 1] - plan.chain_begin[row];
  auto* scores =
      static_cast<double*>(cuda.scratch(Use::Partials, std::int64_t{n_heads} * (n + n_chain) * 8));
  double* weights = scores + std::int64_t{n_heads} * n;
  const auto weigh = layer.dtype == DType::F32   ? weigh_positions<StoreF32>
                     : layer.dtype == DType::F16 ? weigh_positions<StoreF16>
                                                 : weigh_positions<StoreBf16>;
  cuda.launch("attention_weights", weigh, n_heads, kAttentionThreads, 0, call, row, scores,
              weights);
  cuda.launch("mean_over_heads", mean_over_heads, blocks_for(n_chain, kAttentionThreads),
              kAttentionThreads, 0, weights, n_heads, n_chain, mean);
}

}  // namespace

std::size_t AttentionLists::add(const int* list, std::int64_t n) {
  const std::size_t at = ints_.size();
  ints_.insert(ints_.end(), list, list + n);
  return at;
}
std::size_t AttentionLists::add(const std::vector<int>& list) {
  return add(list.data(), static_cast<std::int64_t>(list.size()));
}

void AttentionLists::make(const RowsPlan& plan, const AttentionKey& key) {
  there = nullptr;
  key_ = key;
  ints_.clear();
  passes_.clear();
  n_chunks_ = 0;
  plan_ = {add(plan.seq, plan.n_rows),
           add(plan.pos, plan.n_rows),
           add(plan.chain_begin, plan.n_rows + 1),
           add(plan.prefix_len, plan.n_seqs),
           add(plan.page_begin, plan.n_seqs + 1),
           add(plan.pages, plan.page_begin[plan.n_seqs]),
           add(plan.chain, plan.chain_begin[plan.n_rows])};
  const Passes passes(plan, key.most_chunks);
  for (const PassOfRows& pass : passes.all()) {
    passes_.push_back({add(pass.rows), add(pass.chunk_base), add(pass.groups), add(pass.items),
                       static_cast<int>(pass.rows.size()),
                       static_cast<int>(pass.items.size() / 2)});
    n_chunks_ = std::max(n_chunks_, pass.chunk_base.back());
  }
}

// A forward's first lists are the first again in the next, so what does not change is not told
// again, nor do kernels' arguments change.
const AttentionLists& AttentionPlans::of(CudaDevice& device,
                                         const RowsPlan& plan,
                                         std::int64_t floats_a_chunk) {
  const AttentionKey key = {plan.version, plan.n_rows, plan.sliding_window,
                            std::max<std::int64_t>(1, most_floats_ / floats_a_chunk)};
  if (plan.version == 0 || plan.version != version_) n_used_ = 0;
  version_ = plan.version;
  for (int i = 0; i < n_used_; i++)
    if (lists_[i].key() == key && lists_[i].there) return lists_[i];
  n_used_ = std::min(n_used_ + 1, kMost);
  AttentionLists& lists = lists_[n_used_ - 1];
  lists.make(plan, key);
  const auto use = static_cast<Use>(static_cast<int>(Use::Plan) + n_used_ - 1);
  lists.there = device.mirrored(use, lists.all());
  return lists;
}

void add_attention_ops(Ops& ops) {
  ops.attention = attention;
  ops.attention_weights = attention_weights;
}

}  // namespace kernels::DECOSCOPE_GPU

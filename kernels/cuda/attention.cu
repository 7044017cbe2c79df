// Attention over a paged cache and a token tree: softmax(q k^T) v. As in FlashAttention's split-KV
// form, a block computes one chunk of 64 positions (attention_chunks.cuh), and a second kernel
// joins the chunks of a row (attention_join.cuh). Chunk c is positions [64 c, 64 c + 64) wherever
// they are stored. A row reads only positions that it sees, so its bits depend neither on storage
// nor on other rows (batch invariance).
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cuda/attention_chunks.cuh"
#include "kernels/cuda/attention_lists.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/math.cuh"

namespace kernels::DECOSCOPE_GPU {
namespace {

/// Largest number of rows of one sequence that share the keys and values of a chunk.
constexpr int kGroupRows = kMostQueries;

__host__ __device__ inline int first_position(int pos, int window) {
  return window > 0 && pos >= window ? pos - window + 1 : 0;
}

/// Returns the product whose score without a softcap equals the capped score of `product`.
__device__ inline double capped_product(double product, const AttentionCall& call) {
  if (call.softcap == 0) return product;
  return call.softcap * tanh(product * call.scale / call.softcap) / call.scale;
}

// Softmax of one head of one row in double; writes the weights of the row's chain.
// grid: one block per head; scores [n_heads, n], weights [n_heads, n_chain]
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
    score[p] = capped_product(sum, call);
    top = Larger()(top, score[p]);
  }
  top = over_block<kAttentionThreads>(top, Larger());
  double sum = 0;
  for (int p = first + static_cast<int>(threadIdx.x); p < n; p += kAttentionThreads)
    sum += score[p] = exp((score[p] - top) * call.scale);
  sum = over_block<kAttentionThreads>(sum, Plus());
  for (int p = prefix + static_cast<int>(threadIdx.x); p < n; p += kAttentionThreads)
    weights[std::int64_t{head} * (n - prefix) + p - prefix] = p < first ? 0 : score[p] / sum;
}

// grid: one thread per element of the chain; adds heads in order
__global__ void __launch_bounds__(kAttentionThreads)
    mean_over_heads(const double* weights, int n_heads, int n_chain, float* mean) {
  const int j = blockIdx.x * kAttentionThreads + threadIdx.x;
  if (j >= n_chain) return;
  double sum = 0;
  for (int head = 0; head < n_heads; head++) sum += weights[std::int64_t{head} * n_chain + j];
  mean[j] = static_cast<float>(sum / n_heads);
}

// ---- host

void point_at_plan(AttentionCall& call, const AttentionLists& lists) {
  const int* ints = lists.on_device;
  const PlanPlaces& at = lists.plan();
  call.seq = ints + at.seq;
  call.pos = ints + at.pos;
  call.chain_begin = ints + at.chain_begin;
  call.prefix_len = ints + at.prefix_len;
  call.page_begin = ints + at.page_begin;
  call.pages = ints + at.pages;
  call.chain = ints + at.chain;
}

/// The lists of one pass: rows whose partial results fit the memory for them.
struct PassOfRows {
  std::vector<int> rows, chunk_base{0}, listed, items;
};

// Cuts the rows of a plan into passes. Consecutive rows of one sequence form a group.
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
      group_ = 0;
    }
    PassOfRows& pass = all_.back();
    const int n_in_group = static_cast<int>(pass.rows.size()) - group_;
    if (n_in_group == kGroupRows ||
        (n_in_group > 0 && plan_.seq[pass.rows.back()] != plan_.seq[row]))
      close_group();
    const int seq = plan_.seq[row];
    append(pass.listed, ListedRow{row, first_position(plan_.pos[row], plan_.sliding_window),
                                  plan_.pos[row], plan_.chain_begin[row] - plan_.prefix_len[seq],
                                  pass.chunk_base.back() - first_chunk(row)});
    pass.rows.push_back(row);
    pass.chunk_base.push_back(pass.chunk_base.back() + n_chunks);
  }
  void close_group() {
    if (all_.empty()) return;
    PassOfRows& pass = all_.back();
    const int begin = group_, end = static_cast<int>(pass.rows.size());
    if (begin == end) return;
    group_ = end;
    int first = first_chunk(pass.rows[static_cast<std::size_t>(begin)]), last = 0;
    for (int i = begin; i < end; i++) {
      first = std::min(first, first_chunk(pass.rows[static_cast<std::size_t>(i)]));
      last = std::max(last, last_chunk(pass.rows[static_cast<std::size_t>(i)]));
    }
    const int seq = plan_.seq[pass.rows[static_cast<std::size_t>(begin)]];
    for (int chunk = first; chunk <= last; chunk++) {
      const int n_cached = std::clamp(plan_.prefix_len[seq] - chunk * kPageSize, 0, kPageSize);
      const int page = n_cached > 0 ? plan_.pages[plan_.page_begin[seq] + chunk] : 0;
      append(pass.items, ChunkItem{begin, end, chunk, page, n_cached});
    }
  }
  template <class Entry>
  static void append(std::vector<int>& list, const Entry& entry) {
    const auto ints = std::bit_cast<std::array<int, sizeof(Entry) / sizeof(int)>>(entry);
    list.insert(list.end(), ints.begin(), ints.end());
  }

  const RowsPlan& plan_;
  std::int64_t most_chunks_;
  int group_ = 0;  // first row of the current group in its pass
  std::vector<PassOfRows> all_;
};

template <class Store, int kTiles>
void attend(CudaDevice& cuda, const AttentionCall& call, int n_items, int n_queries) {
  const ChunkMemory<Store> memory(call.head_dim, kTiles * kTileQueries);
  const dim3 grid(static_cast<unsigned>(n_items), static_cast<unsigned>(call.n_kv_heads),
                  static_cast<unsigned>(blocks_for(n_queries, kTiles * kTileQueries)));
  cuda.launch_early("attention", attend_chunks<Store, kTiles>, grid, kAttentionThreads,
                    static_cast<std::size_t>(memory.bytes), call);
}

template <class Store>
void attend_pass(CudaDevice& cuda, const AttentionCall& call, const AttentionPass& pass) {
  const int n_queries = std::min(pass.n_rows, kGroupRows) * (call.n_heads / call.n_kv_heads);
  // The number of queries in a block changes no bit. With few queries, more blocks fit into shared
  // memory. The matrix products also switch to other kernels at 8 rows. The same limit here keeps
  // the number of different kernel lists small.
  if (pass.n_rows <= 8)
    attend<Store, 1>(cuda, call, pass.n_items, n_queries);
  else
    attend<Store, kMostQueries / kTileQueries>(cuda, call, pass.n_items, n_queries);
}

void join_pass(CudaDevice& cuda, const AttentionCall& call, const AttentionPass& pass) {
  cuda.launch_early("attention_join", join_chunks,
                    dim3(static_cast<unsigned>(pass.n_rows), static_cast<unsigned>(call.n_heads)),
                    kAttentionThreads, 0, call);
}

/// Floats of a row's partial result of one chunk.
std::int64_t floats_a_chunk_of(int n_heads, int head_dim) {
  return std::int64_t{n_heads} * (2 + head_dim);
}

AttentionCall call_of(const KvLayer& layer,
                      const RowsPlan& plan,
                      const float* q,
                      const void* staged_k,
                      int n_heads,
                      const Scores& scores) {
  AttentionCall call = {};
  call.k_pages = static_cast<const char*>(layer.k);
  call.v_pages = static_cast<const char*>(layer.v);
  call.page_bytes = layer.page_bytes;
  call.n_kv_heads = layer.n_kv_heads;
  call.head_dim = layer.head_dim;
  call.n_heads = n_heads;
  call.scale = scores.scale;
  call.softcap = scores.softcap;
  call.window = plan.sliding_window;
  call.q = q;
  call.staged_k = staged_k;
  return call;
}

/// One attention call as passes of two kernels: attend() computes chunks, and a later kernel joins them.
class Attention {
 public:
  Attention(CudaDevice& cuda,
            const KvLayer& layer,
            const RowsPlan& plan,
            const float* q,
            std::int64_t q_stride,
            const void* staged_k,
            const void* staged_v,
            int n_heads,
            const Scores& scores,
            float* out,
            std::int64_t out_stride)
      : cuda_(cuda),
        call_(call_of(layer, plan, q, staged_k, n_heads, scores)),
        dtype_(layer.dtype) {
    call_.q_stride = q_stride;
    call_.staged_v = staged_v;
    call_.out = out;
    call_.out_stride = out_stride;
    const std::int64_t floats_a_chunk = floats_a_chunk_of(n_heads, layer.head_dim);
    lists_ = &cuda.attention_plans().of(cuda, plan, floats_a_chunk);
    point_at_plan(call_, *lists_);
    call_.partials =
        static_cast<float*>(cuda.scratch(Use::Partials, lists_->n_chunks() * floats_a_chunk * 4));
  }
  std::span<const AttentionPass> passes() const { return lists_->passes(); }
  /// Computes the chunks of a pass. The returned call joins them.
  const AttentionCall& attend(const AttentionPass& pass) {
    call_.rows = lists_->on_device + pass.rows;
    call_.chunk_base = lists_->on_device + pass.chunk_base;
    call_.listed = reinterpret_cast<const ListedRow*>(lists_->on_device + pass.listed);
    call_.items = reinterpret_cast<const ChunkItem*>(lists_->on_device + pass.items);
    const auto run = dtype_ == DType::F32   ? attend_pass<StoreF32>
                     : dtype_ == DType::F16 ? attend_pass<StoreF16>
                                            : attend_pass<StoreBf16>;
    run(cuda_, call_, pass);
    return call_;
  }

 private:
  CudaDevice& cuda_;
  AttentionCall call_;
  DType dtype_;
  const AttentionLists* lists_;
};

void attention(Device& device,
               const KvLayer& layer,
               const RowsPlan& plan,
               const float* q,
               std::int64_t q_stride,
               const void* staged_k,
               const void* staged_v,
               int n_heads,
               const Scores& scores,
               float* out,
               std::int64_t out_stride) {
  if (plan.n_rows == 0) return;
  check_attention(layer, plan, n_heads, scores);
  CudaDevice& cuda = cuda_of(device);
  Attention passes(cuda, layer, plan, q, q_stride, staged_k, staged_v, n_heads, scores, out,
                   out_stride);
  for (const AttentionPass& pass : passes.passes()) join_pass(cuda, passes.attend(pass), pass);
}

void attention_matmul(Device& device,
                      const KvLayer& layer,
                      const RowsPlan& plan,
                      const float* q,
                      std::int64_t q_stride,
                      const void* staged_k,
                      const void* staged_v,
                      int n_heads,
                      const Scores& scores,
                      float* attended,
                      const Projection& to) {
  ensure(std::int64_t{n_heads} * layer.head_dim == to.w.k,
         "attention_matmul: the matrix must read the outputs of all heads");
  if (plan.n_rows == 0) return;
  check_attention(layer, plan, n_heads, scores);
  CudaDevice& cuda = cuda_of(device);
  Attention passes(cuda, layer, plan, q, q_stride, staged_k, staged_v, n_heads, scores, attended,
                   to.w.k);
  if (passes.passes().size() == 1 && rounds_rows_once(to.w, plan.n_rows))
    return multiply_joined(cuda, passes.attend(passes.passes()[0]), plan.n_rows, to);
  for (const AttentionPass& pass : passes.passes()) join_pass(cuda, passes.attend(pass), pass);
  device.ops().matmul(device, to.w, attended, to.w.k, plan.n_rows, to.y, to.y_stride, to.bias,
                      to.add);
}

void attention_weights(Device& device,
                       const KvLayer& layer,
                       const RowsPlan& plan,
                       int row,
                       const float* q,
                       const void* staged_k,
                       int n_heads,
                       const Scores& scores,
                       float* mean) {
  check_attention_weights(plan, row, scores);
  CudaDevice& cuda = cuda_of(device);
  AttentionCall call = call_of(layer, plan, q, staged_k, n_heads, scores);
  point_at_plan(call,
                cuda.attention_plans().of(cuda, plan, floats_a_chunk_of(n_heads, layer.head_dim)));
  const int n = plan.pos[row] + 1, n_chain = plan.chain_begin[row + 1] - plan.chain_begin[row];
  auto* products =
      static_cast<double*>(cuda.scratch(Use::Partials, std::int64_t{n_heads} * (n + n_chain) * 8));
  double* weights = products + std::int64_t{n_heads} * n;
  const auto weigh = layer.dtype == DType::F32   ? weigh_positions<StoreF32>
                     : layer.dtype == DType::F16 ? weigh_positions<StoreF16>
                                                 : weigh_positions<StoreBf16>;
  cuda.launch("attention_weights", weigh, n_heads, kAttentionThreads, 0, call, row, products,
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
  on_device = nullptr;
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
    passes_.push_back({add(pass.rows), add(pass.chunk_base), add(pass.listed), add(pass.items),
                       static_cast<int>(pass.rows.size()),
                       static_cast<int>(pass.items.size() * sizeof(int) / sizeof(ChunkItem))});
    n_chunks_ = std::max(n_chunks_, pass.chunk_base.back());
  }
}

// The lists of each forward use the same entries of lists_. So unchanged lists are not uploaded
// again, and kernels keep their arguments.
const AttentionLists& AttentionPlans::of(CudaDevice& device,
                                         const RowsPlan& plan,
                                         std::int64_t floats_a_chunk) {
  const AttentionKey key = {plan.version, plan.n_rows, plan.sliding_window,
                            std::max<std::int64_t>(1, most_floats_ / floats_a_chunk)};
  if (plan.version == 0 || plan.version != version_) n_used_ = 0;
  version_ = plan.version;
  for (int i = 0; i < n_used_; i++)
    if (lists_[i].key() == key && lists_[i].on_device) return lists_[i];
  n_used_ = std::min(n_used_ + 1, kMost);
  AttentionLists& lists = lists_[n_used_ - 1];
  lists.make(plan, key);
  const auto use = static_cast<Use>(static_cast<int>(Use::Plan) + n_used_ - 1);
  lists.on_device = device.device_list(use, lists.all());
  return lists;
}

void add_attention_ops(Ops& ops) {
  ops.attention = attention;
  ops.attention_matmul = attention_matmul;
  ops.attention_weights = attention_weights;
}

}  // namespace kernels::DECOSCOPE_GPU

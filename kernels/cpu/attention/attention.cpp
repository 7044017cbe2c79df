// Divides attention into items (some rows of one sequence, one kv head, a range of spans) and distributes them to threads. Any
// division gives the same bits, because a row's sums do not depend on other rows and its spans are joined in order
// (body.h).
#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/op_times.h"

namespace kernels::cpu {
namespace {

constexpr int kMostRows = 64;       // of an item: the state of more would not stay in the cache
constexpr int kFewestRows = 4;      // of an item, if the spans alone do not occupy all threads
constexpr int kItemsPerThread = 8;  // so that all threads finish at about the same time
constexpr int kLeastPerThread = 3;  // with fewer items, rows are divided too

int parts_of(std::int64_t total, std::int64_t per_part) {
  return static_cast<int>((total + per_part - 1) / per_part);
}

// The rows of a plan by sequence. They keep their order, because neighbours share most of their ancestors.
struct RowsBySequence {
  std::vector<int> begin, rows;  // rows of sequence s: rows[begin[s]] .. rows[begin[s + 1] - 1]
  int n_seqs = 0;                // with rows

  explicit RowsBySequence(const RowsPlan& plan) : begin(plan.n_seqs + 1, 0), rows(plan.n_rows) {
    for (int r = 0; r < plan.n_rows; r++) begin[plan.seq[r] + 1]++;
    for (int s = 0; s < plan.n_seqs; s++) {
      n_seqs += begin[s + 1] > 0;
      begin[s + 1] += begin[s];
    }
    std::vector<int> at(begin.begin(), begin.end() - 1);
    for (int r = 0; r < plan.n_rows; r++) rows[at[plan.seq[r]]++] = r;
  }
};

// Some rows of one sequence and one kv head with all spans that they see, divided into n_parts items.
struct Group {
  AttentionItem all;
  int n_parts;

  AttentionItem part(int i) const {
    const std::int64_t n_spans = all.last_span - all.first_span;
    AttentionItem item = all;
    item.first_span = all.first_span + static_cast<int>(n_spans * i / n_parts);
    item.last_span = all.first_span + static_cast<int>(n_spans * (i + 1) / n_parts);
    if (all.partials) item.partials += (item.first_span - all.first_span) * all.partials_stride;
    return item;
  }
};

// Divides rows first into as few blocks as memory allows, because all rows of an item share each key; then their spans; then the
// blocks further.
class Division {
 public:
  Division(const AttentionCall& call, const RowsPlan& plan, int n_threads, int partial_floats)
      : plan_(plan),
        by_seq_(plan),
        n_kv_heads_(call.n_kv_heads),
        floats_per_row_(std::int64_t{partial_floats} * (call.n_heads / call.n_kv_heads)) {
    if (n_threads > 1) {
      const std::int64_t n = std::int64_t{n_kv_heads_} * by_seq_.n_seqs;
      n_wanted_ = parts_of(n_threads * kItemsPerThread, n);
      n_least_ = parts_of(n_threads * kLeastPerThread, n);
    }
    for (int s = 0; s < plan.n_seqs; s++)
      if (by_seq_.begin[s] < by_seq_.begin[s + 1]) add_sequence(s);
  }

  const std::vector<Group>& groups() const { return groups_; }
  /// Floats of the partial results of all groups
  std::int64_t n_floats() const { return n_floats_; }
  int most_rows() const { return most_rows_; }
  /// Gives each divided group its part of the partial results.
  void set_partials(float* at) {
    for (Group& group : groups_) {
      if (group.n_parts == 1) continue;
      group.all.partials = at;
      at += (group.all.last_span - group.all.first_span) * group.all.partials_stride;
    }
  }

 private:
  void add_sequence(int seq) {
    const int begin = by_seq_.begin[seq], n = by_seq_.begin[seq + 1] - begin;
    AttentionItem all = {.seq = seq, .rows = by_seq_.rows.data() + begin, .n_rows = n};
    set_spans(all);
    const int fewest_blocks = parts_of(n, kMostRows);
    const int n_parts =
        std::min(all.last_span - all.first_span, parts_of(n_wanted_, fewest_blocks));
    const int n_blocks =
        std::clamp(parts_of(n_least_, n_parts), fewest_blocks, parts_of(n, kFewestRows));
    for (int b = 0; b < n_blocks; b++) {
      const auto first = static_cast<int>(std::int64_t{n} * b / n_blocks);
      AttentionItem block = all;
      block.rows = all.rows + first;
      block.n_rows = static_cast<int>(std::int64_t{n} * (b + 1) / n_blocks) - first;
      add_block(block, n_parts);
    }
  }
  void add_block(AttentionItem block, int n_parts) {
    set_spans(block);
    n_parts = std::min(n_parts, block.last_span - block.first_span);
    most_rows_ = std::max(most_rows_, block.n_rows);
    block.partials_stride = floats_per_row_ * block.n_rows;
    for (block.kv_head = 0; block.kv_head < n_kv_heads_; block.kv_head++) {
      groups_.push_back({block, n_parts});
      if (n_parts > 1) n_floats_ += (block.last_span - block.first_span) * block.partials_stride;
    }
  }
  void set_spans(AttentionItem& item) const {
    int first = plan_.pos[item.rows[0]], last = first;
    for (int i = 0; i < item.n_rows; i++) {
      const int pos = plan_.pos[item.rows[i]], window = plan_.sliding_window;
      first = std::min(first, window > 0 ? std::max(0, pos - window + 1) : 0);
      last = std::max(last, pos);
    }
    item.first_span = first / kSpan;
    item.last_span = last / kSpan + 1;
  }

  const RowsPlan& plan_;
  RowsBySequence by_seq_;
  int n_kv_heads_;
  std::int64_t floats_per_row_;
  int n_wanted_ = 1, n_least_ = 1;  // items of one sequence and one kv head
  std::vector<Group> groups_;
  std::int64_t n_floats_ = 0;
  int most_rows_ = 0;
};

// Computes the items of all groups. The thread that finishes a group's last item joins its spans.
void run_groups(CpuDevice& cpu,
                const AttentionCall& call,
                const std::vector<Group>& groups,
                DType dtype,
                bool is_small) {
  struct Place {
    int group, part;
  };
  std::vector<Place> items;
  std::vector<std::atomic<int>> n_left(groups.size());
  for (int g = 0; g < static_cast<int>(groups.size()); g++) {
    n_left[g].store(groups[g].n_parts, std::memory_order_relaxed);
    for (int part = 0; part < groups[g].n_parts; part++) items.push_back({g, part});
  }
  const auto attend = dtype == DType::Q8_0 ? cpu.kernels.attention_q8
                                           : cpu.kernels.attention[static_cast<int>(dtype)];
  std::atomic<int> next{0};
  const auto work = [&](int thread) {
    const auto n_items = static_cast<int>(items.size());
    for (int i = next.fetch_add(1); i < n_items; i = next.fetch_add(1)) {
      const auto [g, part] = items[i];
      const Group& group = groups[g];
      attend(call, group.part(part), cpu.own[thread].at_least(0));
      if (group.n_parts > 1 && n_left[g].fetch_sub(1, std::memory_order_acq_rel) == 1)
        cpu.kernels.join_attention(call, group.all);
    }
  };
  if (is_small || items.size() == 1)
    work(0);
  else
    cpu.pool().run(work);
}

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
  CpuDevice& cpu = cpu_of(device);
  const TimedOp timed(cpu, OpKind::Attention);
  const AttentionCall call = {static_cast<const char*>(layer.k),
                              static_cast<const char*>(layer.v),
                              layer.page_bytes,
                              layer.n_kv_heads,
                              layer.head_dim,
                              n_heads,
                              plan.pos,
                              plan.prefix_len,
                              plan.page_begin,
                              plan.pages,
                              plan.chain_begin,
                              plan.chain,
                              plan.sliding_window,
                              q,
                              q_stride,
                              static_cast<const char*>(staged_k),
                              static_cast<const char*>(staged_v),
                              scores.scale,
                              scores.softcap,
                              out,
                              out_stride};
  std::int64_t cost_ns = 0;
  for (int r = 0; r < plan.n_rows; r++)
    cost_ns += std::int64_t{plan.pos[r] + 1} * n_heads * layer.head_dim / 16;
  const bool is_small = cost_ns < 2000;

  // The lists have a few integers per row; they are made in every call and read by all threads. Each thread writes only to its
  // own scratch memory and to the partial results of its items.
  Division division(call, plan, is_small ? 1 : cpu.pool().n_threads(),
                    cpu.kernels.attention_partial_floats(layer.head_dim));
  if (division.n_floats() > 0)
    division.set_partials(reinterpret_cast<float*>(
        cpu.shared.at_least(division.n_floats() * static_cast<int>(sizeof(float)))));
  const std::int64_t scratch_bytes = cpu.kernels.attention_scratch(
      division.most_rows(), n_heads / layer.n_kv_heads, layer.head_dim);
  for (Scratch& scratch : cpu.own) scratch.at_least(scratch_bytes);
  run_groups(cpu, call, division.groups(), layer.dtype, is_small);
}

}  // namespace

void add_attention_ops(Ops& ops) {
  ops.attention = attention;
}

}  // namespace kernels::cpu

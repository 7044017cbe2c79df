// Cuts attention into items (some rows of one sequence, one kv head) and distributes them to
// threads. Any division into items gives the same bits, because a row's sums do not depend on other
// rows (attention_body.h).
#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_device.h"

namespace kernels::cpu {
namespace {

struct Item {
  int seq, kv_head, first, last;  // rows [first, last) of the list by sequence
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
  CpuDevice& cpu = cpu_of(device);
  const int n_threads = cpu.pool().n_threads();
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

  // Groups the rows by sequence and keeps their order, because neighbours share most of their
  // ancestors. These lists and `items` have a few integers per row; they are made in every call and
  // read by all threads; each thread writes only to its own scratch memory.
  std::vector<int> begin(plan.n_seqs + 1, 0), rows(plan.n_rows);
  for (int r = 0; r < plan.n_rows; r++) begin[plan.seq[r] + 1]++;
  for (int s = 0; s < plan.n_seqs; s++) begin[s + 1] += begin[s];
  std::vector<int> at(begin.begin(), begin.end() - 1);
  for (int r = 0; r < plan.n_rows; r++) rows[at[plan.seq[r]]++] = r;

  // Larger items share keys and gathered tiles among more rows; several items per thread balance
  // the load.
  const std::int64_t total = std::int64_t{plan.n_rows} * layer.n_kv_heads;
  const int most =
      static_cast<int>(std::clamp<std::int64_t>(total / (std::int64_t{n_threads} * 3), 4, 64));
  std::vector<Item> items;
  for (int s = 0; s < plan.n_seqs; s++) {
    const int n = begin[s + 1] - begin[s];
    const int n_blocks = (n + most - 1) / most;
    for (int b = 0; b < n_blocks; b++)
      for (int head = 0; head < layer.n_kv_heads; head++)
        items.push_back({s, head, begin[s] + static_cast<int>(std::int64_t{n} * b / n_blocks),
                         begin[s] + static_cast<int>(std::int64_t{n} * (b + 1) / n_blocks)});
  }

  const std::int64_t scratch_bytes =
      cpu.kernels.attention_scratch(most, n_heads / layer.n_kv_heads, layer.head_dim);
  for (Scratch& scratch : cpu.own) scratch.at_least(scratch_bytes);
  const auto attend = cpu.kernels.attention[static_cast<int>(layer.dtype)];
  std::int64_t cost = 0;
  for (int r = 0; r < plan.n_rows; r++)
    cost += std::int64_t{plan.pos[r] + 1} * n_heads * layer.head_dim / 16;
  std::atomic<int> next{0};
  const auto work = [&](int thread) {
    const auto n_items = static_cast<int>(items.size());
    for (int i = next.fetch_add(1); i < n_items; i = next.fetch_add(1)) {
      const Item& item = items[i];
      attend(call, item.seq, item.kv_head, rows.data() + item.first, item.last - item.first,
             cpu.own[thread].at_least(0));
    }
  };
  if (n_threads == 1 || cost < 2000)
    work(0);
  else
    cpu.pool().run(work);
}

}  // namespace

void add_attention_ops(Ops& ops) {
  ops.attention = attention;
}

}  // namespace kernels::cpu

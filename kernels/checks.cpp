#include "kernels/checks.h"

#include "kernels/error.h"

namespace kernels {

void check_attention(const KvLayer& layer, const RowsPlan& plan, int n_heads) {
  ensure(layer.n_kv_heads > 0 && n_heads % layer.n_kv_heads == 0,
         "attention: n_heads is a multiple of n_kv_heads");
  for (int r = 0; r < plan.n_rows; r++) {
    const int seq = plan.seq[r];
    ensure(seq >= 0 && seq < plan.n_seqs, "attention: a row's sequence is out of range");
    const int length = plan.chain_begin[r + 1] - plan.chain_begin[r];
    ensure(length >= 1 && plan.chain[plan.chain_begin[r + 1] - 1] == r,
           "attention: a row's chain ends in the row");
    ensure(plan.pos[r] == plan.prefix_len[seq] + length - 1,
           "attention: pos is prefix_len + chain length - 1");
  }
  for (int s = 0; s < plan.n_seqs; s++) {
    const int n_pages = plan.page_begin[s + 1] - plan.page_begin[s];
    ensure(plan.prefix_len[s] >= 0 && n_pages * kPageSize >= plan.prefix_len[s],
           "attention: a sequence's pages hold its prefix");
  }
}

void check_commit(const int* src, const int* page, const int* slot, int n) {
  for (int i = 0; i < n; i++)
    ensure(slot[i] >= 0 && slot[i] < kPageSize && page[i] >= 0 && src[i] >= 0,
           "kv_commit: a row, page or slot is out of range");
}

}  // namespace kernels

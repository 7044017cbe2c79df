#include "kernels/checks.h"

#include "kernels/error.h"

namespace kernels {

void check_matmul(const PackedMatrix& w, int n_rows, std::int64_t x_stride, std::int64_t y_stride) {
  ensure(w.n > 0 && w.k > 0 && w.data, "matmul: the weights must be packed");
  ensure(!is_quantised(w.dtype) || w.k % 32 == 0,
         "matmul: k of quantised weights must be a multiple of 32");
  ensure(n_rows >= 0 && x_stride >= w.k && y_stride >= w.n,
         "matmul: a stride is smaller than a row");
}

void check_rms_norm(int n_rows, int dim) {
  ensure(n_rows >= 0 && dim > 0, "rms_norm: dim must be at least 1");
}

void check_rope(int n_rows, int n_heads, int head_dim, std::int64_t x_stride) {
  ensure(head_dim > 0 && head_dim % 2 == 0, "rope: head_dim must be even");
  ensure(n_rows >= 0 && x_stride >= std::int64_t{n_heads} * head_dim,
         "rope: the stride is smaller than a row");
}

void check_glu(int n_rows, int hidden) {
  ensure(n_rows >= 0 && hidden > 0, "glu: hidden must be at least 1");
}

void check_head_norm(int n_rows, int n_heads, int n_kv_heads, int head_dim, std::int64_t x_stride) {
  ensure(n_rows >= 0 && n_heads >= 0 && n_kv_heads >= 0 && head_dim > 0,
         "head_norm: head_dim must be at least 1");
  ensure(x_stride >= (std::int64_t{n_heads} + n_kv_heads) * head_dim,
         "head_norm: the stride is smaller than the heads");
}

void check_scale_and_cap(std::int64_t n, float softcap) {
  ensure(n >= 0 && softcap >= 0, "scale_and_cap: n and softcap must not be negative");
}

void check_scores(const Scores& scores) {
  ensure(scores.scale > 0 && scores.softcap >= 0,
         "scores: scale must be positive, softcap must not be negative");
}

std::int64_t checked_page_bytes(DType dtype, int n_kv_heads, int head_dim) {
  ensure(n_kv_heads > 0 && head_dim > 0, "page_bytes: n_kv_heads and head_dim must be at least 1");
  return std::int64_t{kPageSize} * n_kv_heads * head_dim * bytes_of(dtype);
}

void check_stage(int n_rows, int n_kv_heads, int head_dim, std::int64_t x_stride) {
  const int width = n_kv_heads * head_dim;
  ensure(n_rows >= 0 && width > 0 && x_stride >= width,
         "kv_stage: the stride is smaller than a row");
}

void check_rope_kv_stage(
    int n_rows, int n_heads, int n_kv_heads, int head_dim, std::int64_t stride) {
  check_rope(n_rows, n_heads + n_kv_heads, head_dim, stride);
  ensure(n_heads >= 0 && n_kv_heads > 0 &&
             stride >= (std::int64_t{n_heads} + 2 * n_kv_heads) * head_dim,
         "rope_kv_stage: the stride is smaller than queries, keys and values");
}

void check_attention(const KvLayer& layer,
                     const RowsPlan& plan,
                     int n_heads,
                     const Scores& scores) {
  check_scores(scores);
  ensure(layer.n_kv_heads > 0 && n_heads % layer.n_kv_heads == 0,
         "attention: n_heads must be a multiple of n_kv_heads");
  for (int r = 0; r < plan.n_rows; r++) {
    const int seq = plan.seq[r];
    ensure(seq >= 0 && seq < plan.n_seqs, "attention: a row's sequence is out of range");
    const int length = plan.chain_begin[r + 1] - plan.chain_begin[r];
    ensure(length >= 1 && plan.chain[plan.chain_begin[r + 1] - 1] == r,
           "attention: a row's chain must end with the row itself");
    ensure(plan.pos[r] == plan.prefix_len[seq] + length - 1,
           "attention: pos must be prefix_len + chain length - 1");
  }
  for (int s = 0; s < plan.n_seqs; s++) {
    const int n_pages = plan.page_begin[s + 1] - plan.page_begin[s];
    ensure(plan.prefix_len[s] >= 0 && n_pages * kPageSize >= plan.prefix_len[s],
           "attention: a sequence has too few pages for its prefix");
  }
}

void check_attention_weights(const RowsPlan& plan, int row, const Scores& scores) {
  ensure(row >= 0 && row < plan.n_rows, "attention_weights: row is out of range");
  check_scores(scores);
}

void check_pick(std::int64_t stride, int vocab, int n_valid) {
  ensure(n_valid > 0 && n_valid <= vocab && stride >= vocab,
         "pick: n_valid must be 1 to vocab, and the stride at least vocab");
}

void check_rank(std::int64_t stride, int vocab, int n_valid, int k) {
  check_pick(stride, vocab, n_valid);
  ensure(k > 0 && k <= kMaxRanked, "rank: k must be 1 to kMaxRanked");
}

void check_draw(std::int64_t stride, int vocab, int n_valid, const DrawNode* nodes, int n_nodes) {
  check_pick(stride, vocab, n_valid);
  for (int i = 0; i < n_nodes; i++)
    ensure(nodes[i].row >= 0 && nodes[i].first >= 0 && nodes[i].n >= 0 && nodes[i].distribution,
           "draw: a node must have a row, candidates and memory for its distribution");
}

void check_verify(std::int64_t stride,
                  int vocab,
                  int n_valid,
                  const VerifyNode* nodes,
                  int n_nodes,
                  const Candidate* candidates,
                  int n_candidates,
                  int n_rejection_tokens) {
  check_pick(stride, vocab, n_valid);
  ensure(n_rejection_tokens >= 0 && n_rejection_tokens <= kMaxRejectionTokens,
         "verify: n_rejection_tokens must be 0 to kMaxRejectionTokens");
  for (int i = 0; i < n_nodes; i++)
    ensure(nodes[i].row >= 0 && nodes[i].first >= 0 && nodes[i].n >= 0 &&
               nodes[i].n <= n_candidates - nodes[i].first,
           "verify: a node must have a row, and its candidates must be in the list");
  for (int i = 0; i < n_candidates; i++)
    ensure(candidates[i].token >= 0 && candidates[i].token < n_valid,
           "verify: a candidate must be below n_valid");
}

void check_download_rows(std::int64_t row_bytes, std::int64_t stride_bytes, int n_rows) {
  ensure(row_bytes > 0 && stride_bytes >= row_bytes && n_rows >= 0,
         "download_rows: the stride is smaller than a row");
}

void check_commit(
    const KvLayer* layers, int n_layers, const int* src, const int* page, const int* slot, int n) {
  for (int l = 1; l < n_layers; l++)
    ensure(layers[l].page_bytes == layers[0].page_bytes && layers[l].dtype == layers[0].dtype &&
               layers[l].n_kv_heads == layers[0].n_kv_heads &&
               layers[l].head_dim == layers[0].head_dim,
           "kv_commit: all layers must have the same shape");
  for (int i = 0; i < n; i++)
    ensure(slot[i] >= 0 && slot[i] < kPageSize && page[i] >= 0 && src[i] >= 0,
           "kv_commit: a row, page or slot is out of range");
}

}  // namespace kernels

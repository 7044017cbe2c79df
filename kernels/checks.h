// The checks that every device makes of its callers' arguments before it computes.
#pragma once

#include "kernels/ops.h"

namespace kernels {

/// @throws ContractError  unless the weights are packed and each stride, in elements, holds a row
void check_matmul(const PackedMatrix& w, int n_rows, std::int64_t x_stride, std::int64_t y_stride);
/// @throws ContractError  unless dim is positive and n_rows is not negative
void check_rms_norm(int n_rows, int dim);
/// @throws ContractError  unless head_dim is even and the stride, in elements, holds a row
void check_rope(int n_rows, int n_heads, int head_dim, std::int64_t x_stride);
/// @throws ContractError  unless hidden is positive and n_rows is not negative
void check_glu(int n_rows, int hidden);
/// @throws ContractError  unless head_dim is positive and the stride, in elements, holds the heads
void check_head_norm(int n_rows, int n_heads, int n_kv_heads, int head_dim, std::int64_t x_stride);
/// @throws ContractError  unless n and the cap are not negative
void check_scale_and_cap(std::int64_t n, float softcap);
/// @throws ContractError  unless the scale is positive and the cap is not negative
void check_scores(const Scores& scores);
/// Bytes of one page of keys, or of values, of one layer.
/// @throws ContractError  unless there is at least one head of one dimension
std::int64_t checked_page_bytes(DType dtype, int n_kv_heads, int head_dim);
/// @throws ContractError  unless the stride, in elements, holds a row
void check_stage(int n_rows, int n_kv_heads, int head_dim, std::int64_t x_stride);
/// @throws ContractError  unless head_dim is even and the stride, in elements, holds queries, keys and values
void check_rope_kv_stage(
    int n_rows, int n_heads, int n_kv_heads, int head_dim, std::int64_t stride);
/// @throws ContractError  unless the chains, positions, pages and heads of `plan` agree
void check_attention(const KvLayer& layer, const RowsPlan& plan, int n_heads, const Scores& scores);
/// @throws ContractError  unless `row` is a row of the plan, and as check_scores()
void check_attention_weights(const RowsPlan& plan, int row, const Scores& scores);
/// @throws ContractError  unless n_valid is 1 to vocab and the stride, in elements, holds vocab logits
void check_pick(std::int64_t stride, int vocab, int n_valid);
/// Checks as check_pick(), and checks k.
/// @throws ContractError  unless k is 1 to kMaxRanked
void check_rank(std::int64_t stride, int vocab, int n_valid, int k);
/// Checks as check_pick(), and checks the nodes.
/// @throws ContractError  unless each node has a row, candidates and memory for its distribution
void check_draw(std::int64_t stride, int vocab, int n_valid, const DrawNode* nodes, int n_nodes);
/// Checks as check_pick(), and checks the nodes and candidates.
/// @throws ContractError  unless each node's candidates are in the list and each candidate is below n_valid
void check_verify(std::int64_t stride,
                  int vocab,
                  int n_valid,
                  const VerifyNode* nodes,
                  int n_nodes,
                  const Candidate* candidates,
                  int n_candidates,
                  int n_rejection_tokens);
/// @throws ContractError  unless a row ends before the next one begins
void check_download_rows(std::int64_t row_bytes, std::int64_t stride_bytes, int n_rows);
/// @throws ContractError  unless the layers [n_layers] have one shape, and each row, page and slot [n] is in range
void check_commit(
    const KvLayer* layers, int n_layers, const int* src, const int* page, const int* slot, int n);

}  // namespace kernels

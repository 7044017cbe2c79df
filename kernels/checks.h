// What every device asks of its callers before it computes.
#pragma once

#include "kernels/ops.h"

namespace kernels {

/// @throws ContractError  unless the weights are packed and the strides, in elements, hold a row
void check_matmul(const PackedMatrix& w, int n_rows, std::int64_t x_stride, std::int64_t y_stride);
/// @throws ContractError  unless rows have elements
void check_rms_norm(int n_rows, int dim);
/// @throws ContractError  unless dimensions come in pairs and the stride, in elements, holds a row
void check_rope(int n_rows, int n_heads, int head_dim, std::int64_t x_stride);
/// @throws ContractError  unless rows have elements
void check_swiglu(int n_rows, int hidden);
/// Bytes of 64 positions' keys, or values, of one layer.
/// @throws ContractError  unless there is one head of one dimension
std::int64_t checked_page_bytes(DType dtype, int n_kv_heads, int head_dim);
/// @throws ContractError  unless the stride, in elements, holds a row
void check_stage(int n_rows, int n_kv_heads, int head_dim, std::int64_t x_stride);
/// @throws ContractError  unless chains, positions, pages and heads of `plan` fit each other
void check_attention(const KvLayer& layer, const RowsPlan& plan, int n_heads);
/// @throws ContractError  unless `row` is one of the plan's and the scale positive
void check_attention_weights(const RowsPlan& plan, int row, float scale);
/// @throws ContractError  unless some tokens may be chosen and the stride, in elements, holds all
void check_pick(std::int64_t stride, int vocab, int n_valid);
/// As check_pick. @throws ContractError  unless k tokens may be asked for, too
void check_rank(std::int64_t stride, int vocab, int n_valid, int k);
/// As check_pick. @throws ContractError  unless the nodes have rows, and memory for a distribution
void check_draw(std::int64_t stride, int vocab, int n_valid, const DrawNode* nodes, int n_nodes);
/// As check_pick. @throws ContractError  unless the nodes' candidates are in their list, and tokens
void check_judge(std::int64_t stride,
                 int vocab,
                 int n_valid,
                 const VerifyNode* nodes,
                 int n_nodes,
                 const Candidate* candidates,
                 int n_candidates,
                 int n_rejection_tokens);
/// @throws ContractError  unless a row lies before the next one begins
void check_download_rows(std::int64_t row_bytes, std::int64_t stride_bytes, int n_rows);
/// @throws ContractError  unless layers, [n_layers], have one shape, and rows, pages and slots, [n]
/// each, can be some
void check_commit(
    const KvLayer* layers, int n_layers, const int* src, const int* page, const int* slot, int n);

}  // namespace kernels

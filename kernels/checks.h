// What every device asks of its callers before it computes.
#pragma once

#include "kernels/ops.h"

namespace kernels {

/// @throws ContractError  unless chains, positions, pages and heads of `plan` fit each other
void check_attention(const KvLayer& layer, const RowsPlan& plan, int n_heads);
/// @throws ContractError  unless rows, pages and slots, [n] each, can be some
void check_commit(const int* src, const int* page, const int* slot, int n);

}  // namespace kernels

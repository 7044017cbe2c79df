// Packing and reading back of quantised weights; the layout is in layout.h.
#pragma once

#include "kernels/cpu/quantised/layout.h"
#include "kernels/ops.h"

namespace kernels::cpu {

/// Bytes of a panel of 16 outputs of k inputs.
std::int64_t quantised_panel_bytes(DType dtype, int k);
/// @throws ContractError  unless k, the group and the presence of minima are possible for the type
void check_quantised_rows(const QuantisedRows& w, int n, int k, DType to);
/// Packs outputs [16 panel, 16 panel + 16) of w [n, k]; outputs past n are 0.
/// @return  false if the type cannot hold some q, scale or minimum exactly
bool pack_quantised_panel(const QuantisedRows& w, int n, int k, DType to, int panel, char* packed);
/// Writes the k weights of output `lane` of a panel.  to [k]
void dequantise_output(const char* panel, DType dtype, int k, int lane, float* to);

}  // namespace kernels::cpu

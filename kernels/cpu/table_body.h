// The table of an instruction set's loops, except those of quantised products. Include it last.
#pragma once

#include "kernels/cpu/attention/body.h"
#include "kernels/cpu/matmul_body.h"
#include "kernels/cpu/pick_body.h"
#include "kernels/cpu/rows_body.h"

namespace kernels::cpu {
namespace {

CpuKernels table_of_bodies() {
  CpuKernels table = {};
  table.matmul[0] = matmul_kernel<MulF32>();
  table.matmul[1] = matmul_kernel<MulF16>();
  table.matmul[2] = matmul_kernel<MulBF16>();
  table.rms_norm = rms_norm_row;
  table.rope = rope_row;
  table.glu[0] = glu_row<silu>;
  table.glu[1] = glu_row<gelu_tanh>;
  table.scale_and_cap = scale_and_cap_row;
  table.narrow[0] = narrow_row<StoreF32>;
  table.narrow[1] = narrow_row<StoreF16>;
  table.narrow[2] = narrow_row<StoreBF16>;
  table.attention_scratch = attention_scratch_bytes;
  table.attention[0] = attend<StoreF32>;
  table.attention[1] = attend<StoreF16>;
  table.attention[2] = attend<StoreBF16>;
  table.attention_q8 = attend<StoreQ8>;
  table.attention_partial_floats = partial_floats;
  table.join_attention = join_spans;
  table.top_two = top_two_of;
  table.find_first = find_first_of;
  table.sum_exp = sum_exp_of;
  table.noisy_scores = noisy_scores_of;
  table.find_above = find_above_of;
  table.probe_read = probe_read_body;
  for (int type = 0; type < 3; type++) table.probe_multiply[type] = probe_fma_body;
  return table;
}

}  // namespace
}  // namespace kernels::cpu

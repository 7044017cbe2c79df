// The fused operations of kernels::Ops as sequences of its other operations. The CPU runs these
// sequences, and a GPU runs them if it has no fused kernel for a case. Tests use them as the
// reference. Contracts: kernels/ops.h.
#pragma once

#include "kernels/ops.h"

namespace kernels::unfused {

/// `rms_norm`, then `matmul`.
void rms_norm_matmul(Device& device,
                     const float* x,
                     const float* norm,
                     float eps,
                     float* normed,
                     int n_rows,
                     const Projection& to);
/// `glu`, then `matmul`.
void glu_matmul(Device& device,
                Gate gate,
                const float* gate_up,
                float* gated,
                int n_rows,
                const Projection& to);
/// `rope`, then `kv_stage` twice.
void rope_kv_stage(Device& device,
                   float* qkv,
                   std::int64_t stride,
                   int n_rows,
                   int n_heads,
                   int n_kv_heads,
                   int head_dim,
                   const int* pos,
                   const float* table,
                   DType dtype,
                   void* staged_k,
                   void* staged_v);
/// `attention`, then `matmul`.
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
                      const Projection& to);

/// Fills the fused operations of a table with these sequences.
void add_ops(Ops& ops);

}  // namespace kernels::unfused

#include "kernels/unfused.h"

#include "kernels/checks.h"
#include "kernels/device.h"
#include "kernels/error.h"

namespace kernels::unfused {
namespace {

void multiply(Device& device, const float* x, int n_rows, const Projection& to) {
  device.ops().matmul(device, to.w, x, to.w.k, n_rows, to.y, to.y_stride, to.bias, to.add);
}

}  // namespace

void rms_norm_matmul(Device& device,
                     const float* x,
                     const float* norm,
                     float eps,
                     float* normed,
                     int n_rows,
                     const Projection& to) {
  device.ops().rms_norm(device, x, norm, normed, n_rows, to.w.k, eps);
  multiply(device, normed, n_rows, to);
}

void glu_matmul(Device& device,
                Gate gate,
                const float* gate_up,
                float* gated,
                int n_rows,
                const Projection& to) {
  device.ops().glu(device, gate, gate_up, gated, n_rows, to.w.k);
  multiply(device, gated, n_rows, to);
}

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
                   void* staged_v) {
  check_rope_kv_stage(n_rows, n_heads, n_kv_heads, head_dim, stride);
  const Ops& ops = device.ops();
  const float* k = qkv + std::int64_t{n_heads} * head_dim;
  const float* v = k + std::int64_t{n_kv_heads} * head_dim;
  // Keys lie directly after the queries, so one call rotates both.
  ops.rope(device, qkv, stride, n_rows, n_heads + n_kv_heads, head_dim, pos, table);
  ops.kv_stage(device, k, stride, n_rows, n_kv_heads, head_dim, dtype, staged_k);
  ops.kv_stage(device, v, stride, n_rows, n_kv_heads, head_dim, dtype, staged_v);
}

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
                      const Projection& to) {
  ensure(std::int64_t{n_heads} * layer.head_dim == to.w.k,
         "attention_matmul: the matrix must read the outputs of all heads");
  device.ops().attention(device, layer, plan, q, q_stride, staged_k, staged_v, n_heads, scores,
                         attended, to.w.k);
  multiply(device, attended, plan.n_rows, to);
}

void add_ops(Ops& ops) {
  ops.rms_norm_matmul = rms_norm_matmul;
  ops.glu_matmul = glu_matmul;
  ops.rope_kv_stage = rope_kv_stage;
  ops.attention_matmul = attention_matmul;
}

}  // namespace kernels::unfused

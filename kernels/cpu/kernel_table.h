// What one instruction set contributes: loops over raw pointers, nothing else. Files compiled for a
// set include this header and the *_body.h beside it only; threads, checks and planning are
// compiled for the plain processor and live elsewhere.
//   dtypes   storage types are numbered as kernels::DType: 0 f32, 1 f16, 2 bf16
//   panels   16 outputs side by side. f32: 16 floats per k; f16: 16 halves per k, k even;
//            bf16: one 64-byte line per pair of k, k a multiple of 32 (also AMX's tile layout)
#pragma once

#include <cstdint>

namespace kernels::cpu {

inline constexpr int kPanel = 16;         // outputs per panel
inline constexpr int kChunk = 64;         // positions per page and per step of attention's sums
inline constexpr int kNoiseBlock = 64;    // tokens whose noise is drawn together
inline constexpr int kMaxQueryBlock = 4;  // queries that share one pass over a chunk

/// One multiplication as the kernels see it.
struct MatmulCall {
  const void* panels;
  std::int64_t panel_bytes;
  int n, k;
  const void* prepared;  // activations in the layout `prepare` wrote
  int n_rows;
  float* y;
  std::int64_t y_stride;
  const float* bias;  // [n] or null
  bool add;
};

/// Multiplication by weights of one storage type.
struct MatmulKernel {
  std::int64_t (*prepared_bytes)(int n_rows, int k);
  /// Writes part `part` of `n_parts` of the activations' layout; all parts make the whole.
  void (*prepare)(const float* x,
                  std::int64_t x_stride,
                  int n_rows,
                  int k,
                  int part,
                  int n_parts,
                  void* prepared);
  /// Outputs of panels [first, last), all rows.
  void (*multiply)(const MatmulCall& call, int first, int last);
};

/// Attention over one layer; pointers as in kernels::RowsPlan and kernels::KvLayer.
struct AttentionCall {
  const char* k_pages;
  const char* v_pages;
  std::int64_t page_bytes;
  int n_kv_heads, head_dim, n_heads;
  const int *pos, *prefix_len, *page_begin, *pages, *chain_begin, *chain;
  int sliding_window;
  const float* q;
  std::int64_t q_stride;
  const char* staged_k;
  const char* staged_v;
  float scale;
  float* out;
  std::int64_t out_stride;
};

struct CpuKernels {
  MatmulKernel matmul[3];

  void (*rms_norm)(const float* x, const float* w, float* y, int dim, float eps);
  /// One row. cos_sin is the table's line for the row's position, [head_dim / 2, 2].
  void (*rope)(float* x, int n_heads, int head_dim, const float* cos_sin, float* scratch);
  void (*swiglu)(const float* gate, const float* up, float* y, int n);
  /// Rounds n floats to a storage type, to nearest even.
  void (*narrow[3])(const float* x, int n, void* to);

  /// Bytes of scratch for `attention` over n_rows rows.
  std::int64_t (*attention_scratch)(int n_rows, int n_rep, int head_dim);
  /// The query heads of one kv head, for rows of one sequence, in any order.
  void (*attention[3])(
      const AttentionCall& call, int seq, int kv_head, const int* rows, int n_rows, char* scratch);

  /// Largest and second largest (equal when the largest occurs twice). @return first index that is
  /// NaN or +inf, or -1
  int (*top_two)(const float* x, int n, float* top, float* second);
  int (*find_first)(const float* x, int n, float value);
  /// Sum of exp((x - top) * inv_temperature).
  float (*sum_exp)(const float* x, int n, float top, float inv_temperature);
  /// (x - top) * inv_temperature + Gumbel noise, within 1e-5 (1 + |value|) of the exact value, or
  /// -inf where neither the best nor the second best can be. scores [n rounded up to kNoiseBlock].
  void (*noisy_scores)(const float* x,
                       int n,
                       float top,
                       float inv_temperature,
                       std::uint64_t seed,
                       std::uint32_t stream,
                       std::uint32_t position,
                       float* scores,
                       float* best,
                       float* second);
  /// Indices of values >= threshold, ascending; returns how many, writes at most `room`.
  int (*find_above)(const float* x, int n, float threshold, int* to, int room);

  /// Reads `bytes` (a multiple of 1024) once. The result depends on all of them.
  float (*probe_read)(const void* data, std::int64_t bytes);
  /// Multiply-adds per dtype in the instruction `matmul` uses; returns how many were done.
  std::int64_t (*probe_multiply[3])(std::int64_t rounds, float* result);
};

/// The fills, null-free; which of them may run is dispatch.cpp's business.
const CpuKernels& scalar_kernels();
const CpuKernels& avx2_kernels();
const CpuKernels& avx512_kernels();
const CpuKernels& avx512_bf16_kernels();
const CpuKernels& amx_bf16_kernels();

}  // namespace kernels::cpu

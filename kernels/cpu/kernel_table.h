// The loops of one instruction set. They take only raw pointers. Files compiled for an instruction
// set include only this header and the *_body.h files; other files, with threads, checks and
// planning, are compiled for the baseline processor.
//   dtypes  storage types are numbered as in kernels::DType: 0 f32, 1 f16, 2 bf16, then the quantised types of
//           kernels/cpu/quantised/layout.h
//   panels  16 outputs side by side. f32: 16 floats per k; f16: 16 halves per k, k even; bf16: one 64-byte line per pair of
//           k, k a multiple of 32 (AMX's tile layout)
#pragma once

#include <cstdint>

namespace kernels::cpu {

inline constexpr int kTypes = 8;          // of weights
inline constexpr int kPanel = 16;         // outputs per panel
inline constexpr int kChunk = 64;         // positions per page and per step of online softmax
inline constexpr int kNoiseBlock = 64;    // tokens whose Gumbel noise is computed together
inline constexpr int kSpan = 4 * kChunk;  // positions whose attention one thread computes at once

/// Arguments of a matrix multiplication.
struct MatmulCall {
  const void* panels;
  std::int64_t panel_bytes;
  int n, k;
  const void* prepared;  // activations in the layout of `prepare`
  int n_rows;
  float* y;
  std::int64_t y_stride;
  const float* bias;  // [n] or null
  bool add;
  bool cached = false;  // the weights are probably in a cache; changes no bit
};

/// Multiplication by weights of one storage type.
struct MatmulKernel {
  /// Bytes of prepared activations.
  std::int64_t (*prepared_bytes)(int n_rows, int k);
  /// Writes part `part` of `n_parts` of the prepared activations. The parts are independent.
  void (*prepare)(const float* x,
                  std::int64_t x_stride,
                  int n_rows,
                  int k,
                  int part,
                  int n_parts,
                  void* prepared);
  /// Computes the outputs of panels [first, last) for all rows.
  void (*multiply)(const MatmulCall& call, int first, int last);
};

/// Arguments of attention over one layer; pointers as in kernels::RowsPlan and kernels::KvLayer.
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
  float softcap;  // 0: none
  float* out;
  std::int64_t out_stride;
};

/// Attention of the query heads of one kv head (GQA) for rows of one sequence, in any order, over the positions
/// [first_span kSpan, last_span kSpan).
struct AttentionItem {
  int seq = 0, kv_head = 0;
  const int* rows = nullptr;
  int n_rows = 0;
  int first_span = 0, last_span = 0;
  /// Null: the item has all spans that its rows see, and `out` is written. Else `attention_partial_floats` floats for each span,
  /// row and query head, to be joined: [spans, partials_stride]
  float* partials = nullptr;
  std::int64_t partials_stride = 0;
};

/// The loops. Arrays are indexed by storage type.
struct CpuKernels {
  MatmulKernel matmul[kTypes];

  /// RMSNorm of one row.  x, y, w [dim]
  void (*rms_norm)(const float* x, const float* w, float* y, int dim, float eps);
  /// RoPE of one row.  cos_sin [head_dim / 2, 2] for the row's position;  scratch [head_dim]
  void (*rope)(float* x, int n_heads, int head_dim, const float* cos_sin, float* scratch);
  /// y[i] = f(gate[i]) * up[i], indexed by kernels::Gate.  gate, up, y [n]
  void (*glu[2])(const float* gate, const float* up, float* y, int n);
  /// x[i] = scale * x[i], then, if cap is not 0, cap * tanh(x[i] / cap).  x [n]
  void (*scale_and_cap)(float* x, int n, float scale, float cap);
  /// Rounds n floats to a storage type, to nearest even.
  void (*narrow[3])(const float* x, int n, void* to);

  /// Bytes of scratch for `attention` over n_rows rows.
  std::int64_t (*attention_scratch)(int n_rows, int n_rep, int head_dim);
  /// Computes an item.
  void (*attention[3])(const AttentionCall& call, const AttentionItem& item, char* scratch);
  /// The same with a cache of type Q8_0.
  void (*attention_q8)(const AttentionCall& call, const AttentionItem& item, char* scratch);
  /// Floats of the result of one query in one span.
  int (*attention_partial_floats)(int head_dim);
  /// Joins the results of all spans of some rows in order of positions, and writes `out`. The item has the rows of items that
  /// computed the spans, all spans that the rows see, and the first of the results.
  void (*join_attention)(const AttentionCall& call, const AttentionItem& item);

  /// Largest and second largest value; equal if the largest occurs twice.
  /// @return  first index of NaN or +inf, or -1
  int (*top_two)(const float* x, int n, float* top, float* second);
  /// First index of `value`, or -1.
  int (*find_first)(const float* x, int n, float value);
  /// Sum of exp((x - top) * inv_temperature).
  float (*sum_exp)(const float* x, int n, float top, float inv_temperature);
  /// Scores of the Gumbel-max trick: (x - top) * inv_temperature + Gumbel noise, within 1e-5 (1 +
  /// |value|) of the exact value. A token that can be neither best nor second best may get -inf.
  /// scores [n rounded up to kNoiseBlock]
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
  /// Writes the indices of values >= threshold to `to`, ascending, at most `room`. @return  their number
  int (*find_above)(const float* x, int n, float threshold, int* to, int room);

  /// Reads `bytes` (a multiple of 1024) once. The result depends on all bytes.
  float (*probe_read)(const void* data, std::int64_t bytes);
  /// Runs multiply-adds with the instruction that `matmul` uses. @return  their number
  std::int64_t (*probe_multiply[kTypes])(std::int64_t rounds, float* result);
};

// The complete tables; dispatch.cpp decides which of them can run.
/// Plain C++, the reference.
const CpuKernels& scalar_kernels();
/// AVX2 with FMA and F16C.
const CpuKernels& avx2_kernels();
/// AVX2 with AVX-VNNI for quantised weights.
const CpuKernels& avx_vnni_kernels();
/// AVX-512 F, BW, VL and DQ.
const CpuKernels& avx512_kernels();
/// AVX-512 with VNNI for quantised weights.
const CpuKernels& avx512_vnni_kernels();
/// AVX-512 with VNNI, and with vdpbf16ps for bf16 weights.
const CpuKernels& avx512_bf16_kernels();
/// AVX-512 with VNNI, and with AMX tiles for bf16 weights.
const CpuKernels& amx_bf16_kernels();
/// The same, and with AMX tiles for quantised weights.
const CpuKernels& amx_int8_kernels();

}  // namespace kernels::cpu

// Training operations on the CPU besides products: forwards and backwards on row-major arrays.
// Activations are T (f32 or bf16); the residual stream, gradients of weights and all sums are f32.
// Each instruction set has a table of these operations (train_ops_base.cpp, _avx2.cpp,
// _avx512.cpp); the program chooses one at its start. All tables sum in 16 lanes.
//   dim, hidden_dim, head_dim and vocab_size are multiples of 16
#pragma once

#include <cstdint>

#include "engine/train/ops/bf16.h"
#include "kernels/adam_step.h"

namespace engine {

/// D of a distribution q from a teacher's p, in nats, with m = (p + q) / 2.
enum class Divergence {
  Forward,  // KL(p || q), the sum of p log(p / q)
  Reverse,  // KL(q || p)
  JensenShannon,  // (KL(p || m) + KL(q || m)) / 2: GKD's generalised divergence (Agarwal et al. 2023) with beta = 1/2
};

/// Rows [begin, end) of a pass that belong together: a text, possibly followed by chains. Rows
/// attend only to rows of their segment.
struct Segment {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// The rows of its segment that a row attends to: [0, prefix_end) and [own_begin, the row itself].
/// A causal row has {0, 0}. For a chain that starts at row c and continues the text after row p,
/// the rows have {p + 1, c}.
struct RowView {
  std::int32_t prefix_end = 0;
  std::int32_t own_begin = 0;
};

/// Shape of attention and RoPE: a row of qkv holds n_heads queries, n_kv_heads keys and n_kv_heads
/// values, each head_dim wide.
struct AttentionShape {
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  /// Numbers in a row of qkv.
  int qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_dim; }
  /// Values in a row of the output.
  int out_width() const { return n_heads * head_dim; }
};

using kernels::AdamStep;

/// Operations on activations of one type.
template <typename T>
struct RowOps {
  /// h = x r w with r = 1 / sqrt(mean(x^2) + eps); copies x to `x_copy` unless null.
  ///   x, x_copy [rows, dim] f32;  w [dim];  h [rows, dim];  r [rows]
  void (*rms_norm)(
      const float* x, const float* w, T* h, float* r, float* x_copy, int rows, int dim, float eps);
  /// Backward of rms_norm: adds the gradient of its input to dx and that of w to dw. Writes dx
  /// rounded to T to dx_copy unless that is null.
  ///   dx [rows, dim] f32, holds the gradient of the residual stream; dh [rows, dim]
  void (*rms_norm_backward)(const float* x,
                            const float* w,
                            const float* r,
                            const T* dh,
                            float* dx,
                            float* dw,
                            T* dx_copy,
                            int rows,
                            int dim);
  /// Applies RoPE in place to the first n_rotated heads of each row. Elements i and i + head_dim /
  /// 2 form a pair, as in Hugging Face's layout. `direction` -1 computes the backward.
  ///   x [rows, stride];  pos [rows];  cos_sin [max_pos, head_dim]: cosines, then sines
  void (*rope)(T* x,
               const std::int32_t* pos,
               const float* cos_sin,
               int rows,
               int stride,
               int n_rotated,
               int head_dim,
               float direction);
  /// act = silu(gate) up.  gate_up [rows, 2 hidden_dim]: gates, then ups;  act [rows, hidden_dim]
  void (*swiglu)(const T* gate_up, T* act, int rows, int hidden_dim);
  /// Backward of swiglu. It also computes act again, so the caller does not have to store it.
  void (*swiglu_backward)(
      const T* gate_up, const T* d_act, T* d_gate_up, T* act, int rows, int hidden_dim);
  /// Softmax attention within each segment, scores scaled by 1 / sqrt(head_dim).
  ///   qkv [rows, qkv_width], out [rows, out_width], lse [rows, n_heads] (log of the row's sum)
  ///   views [rows] or null for causal;  scratch: attention_scratch(shape, longest segment) floats
  /// Does not write the output of rows outside every segment.
  void (*attention)(const T* qkv,
                    const Segment* segments,
                    int n_segments,
                    const RowView* views,
                    T* out,
                    float* lse,
                    const AttentionShape& shape,
                    float* scratch);
  /// Backward of attention, with the same arguments.
  void (*attention_backward)(const T* qkv,
                             const Segment* segments,
                             int n_segments,
                             const RowView* views,
                             const T* out,
                             const T* d_out,
                             const float* lse,
                             T* d_qkv,
                             const AttentionShape& shape,
                             float* scratch);
  /// Softmax cross-entropy of each row and its gradient.
  ///   logits [rows, vocab_size] f32, overwritten;  target [rows];  weight [rows], 0: row ignored
  ///   d_logits [rows, vocab_size] = weight (p - onehot)
  ///   loss [rows]: -log p(target), not weighted; 0 if the weight is 0
  void (*cross_entropy)(float* logits,
                        const std::int32_t* target,
                        const float* weight,
                        T* d_logits,
                        float* loss,
                        int rows,
                        int vocab_size);
  /// The same for one row with a smoothed label: 1 - smoothing on the target, and smoothing spread
  /// evenly over all tokens.
  ///   logits [vocab_size] f32;  d_logits [vocab_size] = weight (p - label)
  /// @return  -sum of label log p, not weighted
  float (*smoothed_cross_entropy)(const float* logits,
                                  std::int32_t target,
                                  float smoothing,
                                  float weight,
                                  T* d_logits,
                                  int vocab_size);
  /// Divergence of a row's distribution q from a teacher's distribution p, which is held constant.
  ///   logits, teacher [vocab_size] f32: the logits of q and p
  ///   d_logits [vocab_size] = weight dD / dlogits
  /// @return  D in nats, not weighted
  float (*divergence)(const float* logits,
                      const float* teacher,
                      Divergence by,
                      float weight,
                      T* d_logits,
                      int vocab_size);
  /// y = x rounded to T.
  void (*convert)(const float* x, T* y, std::int64_t n);
  /// y = x + silu(z), or silu(z) where x is null.  z [n] f32;  x, y [n];  n a multiple of 16
  void (*silu)(const float* z, const T* x, T* y, std::int64_t n);
  /// dz = dy silu'(z)
  void (*silu_backward)(const float* z, const T* dy, T* dz, std::int64_t n);
  /// sums[i] += x[0][i] + x[1][i] + ...  x [rows, width];  width a multiple of 16
  void (*column_sums)(const T* x, float* sums, int rows, int width);
};

/// Operations on parameters, all f32.
struct ParameterOps {
  /// Writes parts[0][i] + parts[1][i] + ..., summed in that order, to parts[0][i], and sets the
  /// other parts to zero. @return  the sum of the squares of the result, in double
  double (*reduce)(float* const* parts, int n_parts, std::int64_t begin, std::int64_t end);
  /// One AdamW update of w[0..n): Loshchilov and Hutter 2019, decoupled decay. Sets g to zero.
  void (*adamw)(float* w, float* m, float* v, float* g, std::int64_t n, const AdamStep& step);
  /// y += x
  void (*add)(float* y, const float* x, std::int64_t n);
};

/// The operations of one instruction set.
struct TrainTable {
  const char* name;  // "base", "avx2", "avx512"
  RowOps<float> f32;
  RowOps<Bf16> bf16;
  ParameterOps parameters;
  /// The operations of type T.
  template <typename T>
  const RowOps<T>& ops() const;
};
template <>
inline const RowOps<float>& TrainTable::ops<float>() const {
  return f32;
}
template <>
inline const RowOps<Bf16>& TrainTable::ops<Bf16>() const {
  return bf16;
}

/// Number of scratch floats that attention and its backward need for segments of up to `max_rows`
/// rows.
std::int64_t attention_scratch(const AttentionShape& shape, int max_rows);

/// The best table that this processor supports.
const TrainTable& train_table();
/// Writes all tables that this processor supports to `tables` (room for 3). @return  their number
int all_train_tables(const TrainTable** tables);

}  // namespace engine

// The operations a training step needs, as a table that the CPU (engine/train/ops/cpu_device.h) and
// CUDA each fill. A training pass is written once, in terms of this table.
//   sums      f32 (the gradient's squares in double), each in one fixed order without atomics: the
//             same calls give the same bits
//   pointers  device memory unless a comment says "host". Arrays are row-major; those of `type` are
//             f32 or bf16; the residual stream, gradients of weights and losses are f32
//   type      of activations and products, F32 or BF16
#pragma once

#include <cstdint>
#include <string>

#include "kernels/adam_step.h"
#include "kernels/dtype.h"

namespace kernels {

class Device;

/// Attention span of a row, in rows of the pass: it attends to [begin, prefix_end) and
/// [own_begin, itself]; rows from `end` on do not attend to it. A row that attends to nothing is
/// {row, row, row + 1, row}.
struct AttentionSpan {
  std::int32_t begin = 0, prefix_end = 0, own_begin = 0, end = 0;
};

/// Shape of attention. A row of qkv holds n_heads queries, n_kv_heads keys and n_kv_heads values,
/// each head_dim wide (at most 256).
struct AttentionRows {
  int n_rows = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  /// Numbers in a row of qkv.
  int qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_dim; }
  /// Values in a row of the output.
  int out_width() const { return n_heads * head_dim; }
};

/// The distribution that a row's own distribution q is trained towards.
struct RowGoal {
  /// Target: the row's target token. The others: a teacher's distribution p, by the divergence
  /// KL(p || q), KL(q || p), or their mean from (p + q) / 2.
  enum class Kind : std::int32_t { Target, Forward, Reverse, JensenShannon } kind = Kind::Target;
  float smoothing = 0;       // Target: share of the label that is spread over all tokens
  std::int32_t teacher = 0;  // others: the row of this pass whose distribution is p
};

/// The weights of a model or of draft heads in one array.
struct TrainWeights {
  const float* masters = nullptr;  // f32
  /// The weights in the form that products read. CUDA: the array in `type`; CPU: the device's
  /// packed matrices.
  const void* packed = nullptr;
};

/// A matrix W [n_out, n_in] within the weights.
struct TrainMatrix {
  std::int64_t at = 0;  // index of its first element
  int n_out = 0, n_in = 0;
};

/// Table of training operations. Every function throws Error(Resources or Device) if the device
/// refuses.
struct TrainOps {
  /// Products need a number of rows that is a multiple of this.
  int row_multiple = 1;
  /// Number of rows whose logits (and gradients of logits) are in memory at the same time; 0:
  /// limited by bytes.
  int logit_rows = 0, gradient_rows = 0;

  /// Sets bytes to zero.
  void (*clear)(Device&, void* data, std::int64_t bytes);
  /// y = x rounded to the type.
  void (*convert)(Device&, DType type, const float* x, void* y, std::int64_t n);

  /// y [rows, n_out] = x W^T.  x [rows, n_in]
  void (*forward)(Device&,
                  DType type,
                  const TrainWeights&,
                  const TrainMatrix&,
                  const void* x,
                  int rows,
                  void* y);
  /// y [rows, n_out] f32 = x W^T, added to y if `add`.
  void (*forward_f32)(Device&,
                      DType type,
                      const TrainWeights&,
                      const TrainMatrix&,
                      const void* x,
                      int rows,
                      float* y,
                      bool add);
  /// z [rows, n_out] f32 = x W^T + bias, y = residual + silu(z).  bias [n_out], or null: none;
  /// residual, y [rows, n_out]; residual null: none
  void (*forward_silu)(Device&,
                       DType type,
                       const TrainWeights&,
                       const TrainMatrix&,
                       const void* x,
                       const float* bias,
                       const void* residual,
                       int rows,
                       float* z,
                       void* y);
  /// dx [rows, n_in] = dy W.  dy [rows, n_out]
  void (*backward_input)(Device&,
                         DType type,
                         const TrainWeights&,
                         const TrainMatrix&,
                         const void* dy,
                         int rows,
                         void* dx);
  /// The same with dx f32.
  void (*backward_input_f32)(Device&,
                             DType type,
                             const TrainWeights&,
                             const TrainMatrix&,
                             const void* dy,
                             int rows,
                             float* dx);
  /// dW += dy^T x, at the matrix's place in the gradient of all weights.
  void (*backward_weight)(Device&,
                          DType type,
                          const TrainWeights&,
                          const TrainMatrix&,
                          const void* dy,
                          const void* x,
                          int rows,
                          float* gradient);

  /// x[r, :] = table[token[r], :].  table [n_tokens, dim], x [n_rows, dim], token [n_rows]
  void (*gather_rows)(
      Device&, const float* table, const std::int32_t* token, float* x, int n_rows, int dim);
  /// Backward of gather_rows. Group g holds rows row[begin[g]] .. row[begin[g + 1] - 1], in that
  /// order; they are added to row token[row[begin[g]]] of `table`. No two groups share a token.
  void (*scatter_rows)(Device&,
                       const float* dx,
                       const std::int32_t* token,
                       const std::int32_t* row,
                       const std::int32_t* begin,
                       int n_groups,
                       float* table,
                       int dim);

  /// h = x r w with r = 1 / sqrt(mean(x^2) + eps); copies x to x_copy unless null.
  ///   x, x_copy [n_rows, dim], w [dim], r [n_rows];  h [n_rows, dim] of the type
  void (*rms_norm)(Device&,
                   DType type,
                   const float* x,
                   const float* w,
                   void* h,
                   float* r,
                   float* x_copy,
                   int n_rows,
                   int dim,
                   float eps);
  /// Adds the gradient of the input to dx and that of the weights to dw; dx_copy = dx rounded to
  /// the type.
  ///   dx [n_rows, dim];  dh, dx_copy [n_rows, dim] of the type
  void (*rms_norm_backward)(Device&,
                            DType type,
                            const float* x,
                            const float* w,
                            const float* r,
                            const void* dh,
                            float* dx,
                            float* dw,
                            void* dx_copy,
                            int n_rows,
                            int dim);
  /// Rotates the first n_rotated heads of each row in place (RoPE), pairs (i, i + head_dim / 2);
  /// `direction` -1 is the backward.
  ///   x [n_rows, stride] of the type;  pos [n_rows];  cos_sin [max_pos, head_dim]: cosines, sines
  void (*rope)(Device&,
               DType type,
               void* x,
               const std::int32_t* pos,
               const float* cos_sin,
               int n_rows,
               int stride,
               int n_rotated,
               int head_dim,
               float direction);
  /// act = silu(gate) up.  gate_up [n_rows, 2 hidden]: gates, then ups;  act [n_rows, hidden]
  void (*swiglu)(Device&, DType type, const void* gate_up, void* act, int n_rows, int hidden);
  /// Backward of swiglu. Also recomputes act.
  void (*swiglu_backward)(Device&,
                          DType type,
                          const void* gate_up,
                          const void* d_act,
                          void* d_gate_up,
                          void* act,
                          int n_rows,
                          int hidden);
  /// dz = dy silu'(z).  z [n] f32;  dy, dz [n] of the type
  void (*silu_backward)(
      Device&, DType type, const float* z, const void* dy, void* dz, std::int64_t n);
  /// y += x, rounded to the type.  x, y [n]
  void (*add)(Device&, DType type, const void* x, void* y, std::int64_t n);
  /// sums[i] += x[0, i] + x[1, i] + ..  x [n_rows, width] of the type
  void (*column_sums)(Device&, DType type, const void* x, float* sums, int n_rows, int width);

  /// to[to_row[r], :] = from[from_row[r], :], rounded to to_type; zeros where from_row[r] is
  /// negative. No two rows have the same destination.
  ///   from [.., dim];  to [.., to_stride], of which the first dim are written
  ///   from_row, to_row [n_rows]; null: r itself
  void (*copy_rows)(Device&,
                    DType from_type,
                    const void* from,
                    const std::int32_t* from_row,
                    DType to_type,
                    void* to,
                    const std::int32_t* to_row,
                    int to_stride,
                    int n_rows,
                    int dim);

  /// Softmax attention, scores scaled by 1 / sqrt(head_dim). A row that attends to nothing gets
  /// zeros.
  ///   qkv [n_rows, qkv_width], out [n_rows, out_width], of the type
  ///   spans [n_rows];  lse [n_rows, n_heads]: log of the sum of the row's exponentials
  void (*attention)(Device&,
                    DType type,
                    const AttentionRows&,
                    const void* qkv,
                    const AttentionSpan* spans,
                    void* out,
                    float* lse);
  /// Backward of attention. Writes all of d_qkv.
  void (*attention_backward)(Device&,
                             DType type,
                             const AttentionRows&,
                             const void* qkv,
                             const AttentionSpan* spans,
                             const void* out,
                             const void* d_out,
                             const float* lse,
                             void* d_qkv);

  /// Softmax cross-entropy of each row and its gradient.
  ///   logits [n_rows, vocab], may be overwritten;  target, weight [n_rows], weight 0: no loss
  ///   d_logits [n_rows, vocab] of the type = weight (p - onehot)
  ///   loss [n_rows]: -log p(target), not weighted; 0 where the weight is
  void (*cross_entropy)(Device&,
                        DType type,
                        float* logits,
                        const std::int32_t* target,
                        const float* weight,
                        void* d_logits,
                        float* loss,
                        int n_rows,
                        int vocab);
  /// Loss of each row towards its goal, and its gradient.
  ///   logits [n_rows, vocab];  teachers [n_teachers, vocab]: logits held constant, which may share
  ///   memory with `logits`; ignored if no row has a teacher.  goals [n_rows]
  ///   d_logits = weight times the loss's derivative.  loss [n_rows]: -sum of label log p, or the
  ///   divergence, in nats, not weighted
  void (*goal_losses)(Device&,
                      DType type,
                      const float* logits,
                      const float* teachers,
                      const RowGoal* goals,
                      const std::int32_t* target,
                      const float* weight,
                      void* d_logits,
                      float* loss,
                      int n_rows,
                      int vocab);
  /// Squared distance of f to the state it is trained to predict, and the gradient of f:
  /// dx[row[r], :] = 2 weight (f[row[r], :] - wanted[wanted_row[r], :]) + d_read[r].
  ///   f, dx [.., dim];  wanted [.., dim] bf16;  row, wanted_row [n_rows], no row twice
  ///   d_read [n_rows, d_stride] of the type; only the first dim of each row are read
  ///   squares [n_rows]: each row's sum, not weighted
  void (*feature_loss)(Device&,
                       DType type,
                       const float* f,
                       const std::int32_t* row,
                       const void* wanted,
                       const std::int32_t* wanted_row,
                       const void* d_read,
                       int d_stride,
                       float weight,
                       float* dx,
                       float* squares,
                       int n_rows,
                       int dim);
  /// rank[r] = 1 + the number of the first n_valid tokens with a larger logit than the row's target,
  /// or with an equal one and a lower id; 0 where the target is negative.
  ///   logits [n_rows, vocab];  target, rank [n_rows]
  void (*target_ranks)(Device&,
                       const float* logits,
                       const std::int32_t* target,
                       std::int32_t* rank,
                       int n_rows,
                       int vocab,
                       int n_valid);
  /// Each row's likeliest token; of equal logits the lowest id, -1 if a logit is not finite. Waits.
  ///   logits [n_rows, vocab];  token_to_host [n_rows] host
  void (*argmax)(Device&, const float* logits, int n_rows, int vocab, std::int32_t* token_to_host);
};

/// C [m, n] = A B, added to C if `add`.  A [m, k], or [k, m] if a_transposed; B [k, n], or [n, k] if
/// b_transposed. A and B of one type; C of that type or f32.
struct TrainProduct {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_transposed = false, b_transposed = false;
  DType in = DType::F32, out = DType::F32;
  bool add = false;
  int m = 0, n = 0, k = 0;
};

/// Elements whose squares TrainKernels::squares adds up in one sum.
inline constexpr std::int64_t kSquaresBlock = 1 << 15;

/// The table of a CUDA device. It adds AdamW and the product from which the matrix operations are
/// built.
struct TrainKernels : TrainOps {
  /// Opens the library that makes the products. @return its name: "cuBLAS 130002", "own products"
  /// @throws Error(Device)  with a message of one line, if cuBLAS is not available
  std::string (*products)(Device&);
  /// Computes a product.
  void (*product)(Device&, const TrainProduct&);
  /// z += bias unless bias is null, then y = x + silu(z), or silu(z) where x is null.
  ///   z [n_rows, dim] f32, bias [dim];  x, y [n_rows, dim] of the type
  void (*silu)(Device&,
               DType type,
               float* z,
               const float* bias,
               const void* x,
               void* y,
               int n_rows,
               int dim);
  /// sums[b] = the sum of squares of g[b kSquaresBlock, (b + 1) kSquaresBlock).
  void (*squares)(Device&, const float* g, std::int64_t n, double* sums);
  /// One AdamW update of w[0..n), w rounded to `type` in `rounded` unless that is null; clears g.
  ///   `step` is in device memory, so one captured graph serves every step
  void (*adamw)(Device&,
                float* w,
                float* mean,
                float* square,
                float* g,
                DType type,
                void* rounded,
                std::int64_t n,
                const AdamStep* step);
};

/// Table of a device that `open_cuda` opened.
const TrainKernels& train_kernels(const Device& device);

}  // namespace kernels

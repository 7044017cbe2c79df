// What training needs of a GPU besides kernels/ops.h: forwards that keep what their backward reads
// again, the backwards, products in three directions, AdamW.
//   sums       f32 (the gradient's squares in double), each in one fixed order: no atomics, so the
//              same calls give the same bits
//   pointers   device memory. Arrays are row-major; those of `type` are f32 or bf16, the residual
//              stream, gradients of weights and losses are f32
#pragma once

#include <cstdint>
#include <string>

#include "kernels/adam_step.h"
#include "kernels/dtype.h"

namespace kernels {

class Device;

/// Whom a row sees, in rows of the pass: [begin, prefix_end) and [own_begin, itself]. No row from
/// `end` on sees it. One that sees nobody, itself included, is {row, row, row + 1, row}.
struct TrainSight {
  std::int32_t begin = 0, prefix_end = 0, own_begin = 0, end = 0;
};

/// Rows of qkv hold n_heads queries, n_kv_heads keys and as many values, head_dim (at most 256)
/// wide.
struct TrainHeads {
  int n_rows = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
};

/// What a row's distribution q is pulled towards: its target, or a teacher's distribution p.
struct TrainGoal {
  /// Forward: by sum of p log(p / q). Reverse: by sum of q log(q / p).
  enum class By : std::int32_t { Target, Forward, Reverse } by = By::Target;
  float smoothing = 0;       // of Target: share of the label that is spread over all tokens
  std::int32_t teacher = 0;  // of the others: the row of the teachers whose distribution is p
};

/// C [m, n] = A B, added to C if `add`.  A [m, k], or [k, m] where turned; B [k, n], or [n, k].
/// A and B of one type; C of that type or f32.
struct TrainProduct {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_turned = false, b_turned = false;
  DType in = DType::F32, out = DType::F32;
  bool add = false;
  int m = 0, n = 0, k = 0;
};

/// Elements whose squares `squares` adds up in one sum.
inline constexpr std::int64_t kSquaresBlock = 1 << 15;

/// Every function throws Error(Resources or Device) when the device refuses.
struct TrainKernels {
  /// Opens what products are made with. @return its name: "cuBLAS 130002", "own products"
  /// @throws Error(Device)  in one line, if cuBLAS is not here
  std::string (*products)(Device&);
  void (*product)(Device&, const TrainProduct&);

  void (*clear)(Device&, void* data, std::int64_t bytes);
  /// y = x rounded to the type.
  void (*convert)(Device&, DType type, const float* x, void* y, std::int64_t n);

  /// x[r, :] = table[token[r], :].  table [n_tokens, dim], x [n_rows, dim], token [n_rows]
  void (*gather_rows)(
      Device&, const float* table, const std::int32_t* token, float* x, int n_rows, int dim);
  /// Its backward. Group g holds rows row[begin[g]] .. row[begin[g + 1] - 1], in that order; they
  /// are added to row token[row[begin[g]]] of `table`. No two groups share a token.
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
  /// dx += the input's gradient, dw += the weights', dx_copy = dx rounded to the type.
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
  /// Rotates the first n_rotated heads of each row in place, pairs (i, i + head_dim / 2);
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
  /// Also computes act again.
  void (*swiglu_backward)(Device&,
                          DType type,
                          const void* gate_up,
                          const void* d_act,
                          void* d_gate_up,
                          void* act,
                          int n_rows,
                          int hidden);

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
  /// dz = dy silu'(z).  z [n] f32;  dy, dz [n] of the type
  void (*silu_backward)(
      Device&, DType type, const float* z, const void* dy, void* dz, std::int64_t n);
  /// y += x, rounded to the type.  x, y [n]
  void (*add)(Device&, DType type, const void* x, void* y, std::int64_t n);
  /// sums[i] += x[0, i] + x[1, i] + ..  x [n_rows, width] of the type
  void (*column_sums)(Device&, DType type, const void* x, float* sums, int n_rows, int width);

  /// to[to_row[r], :] = from[from_row[r], :], rounded to to_type; zeros where from_row[r] is
  /// negative. No two rows go to the same place.
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

  /// Softmax attention, scores scaled by 1 / sqrt(head_dim). A row that sees nobody gets zeros.
  ///   qkv [n_rows, (n_heads + 2 n_kv_heads) head_dim], out [n_rows, n_heads head_dim], of the type
  ///   sight [n_rows];  lse [n_rows, n_heads]: the log of the row's sum
  void (*attention)(Device&,
                    DType type,
                    const TrainHeads& heads,
                    const void* qkv,
                    const TrainSight* sight,
                    void* out,
                    float* lse);
  /// d_qkv is written whole.
  void (*attention_backward)(Device&,
                             DType type,
                             const TrainHeads& heads,
                             const void* qkv,
                             const TrainSight* sight,
                             const void* out,
                             const void* d_out,
                             const float* lse,
                             void* d_qkv);

  /// Softmax cross-entropy of each row and its gradient.
  ///   logits [n_rows, vocab];  target, weight [n_rows], weight 0: the row is ignored
  ///   d_logits [n_rows, vocab] of the type = weight (p - onehot)
  ///   loss [n_rows]: -log p(target), not weighted; 0 where the weight is
  void (*cross_entropy)(Device&,
                        DType type,
                        const float* logits,
                        const std::int32_t* target,
                        const float* weight,
                        void* d_logits,
                        float* loss,
                        int n_rows,
                        int vocab);

  /// The same where rows have goals: how far each row is from its own, and the gradient of that.
  ///   teachers [n_teachers, vocab]: logits, held constant, which may be `logits` and rows beside
  ///   them; nothing where no row has a teacher.  goals [n_rows]
  ///   d_logits = weight times the loss's derivative.  loss [n_rows]: -sum of label log p, or the
  ///   divergence, in nats
  void (*goal_losses)(Device&,
                      DType type,
                      const float* logits,
                      const float* teachers,
                      const TrainGoal* goals,
                      const std::int32_t* target,
                      const float* weight,
                      void* d_logits,
                      float* loss,
                      int n_rows,
                      int vocab);
  /// The square of what a row of f is off what it shall become, and its gradient beside what comes
  /// from elsewhere: dx[row[r], :] = 2 weight (f[row[r], :] - wanted[wanted_row[r], :]) + d_read[r].
  ///   f, dx [.., dim];  wanted [.., dim] bf16;  row, wanted_row [n_rows], no row twice
  ///   d_read [n_rows, d_stride] of the type, of which the first dim are read
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
  /// rank[r] = 1 + how many of the first n_valid tokens a row prefers to its target, of equal logits
  /// those of a lower id; 0 where the target is negative.
  ///   logits [n_rows, vocab];  target, rank [n_rows]
  void (*target_ranks)(Device&,
                       const float* logits,
                       const std::int32_t* target,
                       std::int32_t* rank,
                       int n_rows,
                       int vocab,
                       int n_valid);

  /// sums[b] = the squares of g's elements from b kSquaresBlock on, so many of them.
  void (*squares)(Device&, const float* g, std::int64_t n, double* sums);
  /// One update of w[0..n), w rounded to `type` in `rounded` unless that is null; g becomes zero.
  ///   step  device memory like the rest: the call is the same in every step, and so is its graph
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

/// Of a device that `open_cuda` opened.
const TrainKernels& train_kernels(const Device& device);

}  // namespace kernels

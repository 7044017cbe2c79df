// Rows through one output matrix: losses with their gradient, or ranks. The logits of all rows
// never live at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/train/ops/aligned_vector.h"
#include "engine/train/ops/linear.h"
#include "engine/train/ops/train_ops.h"
#include "engine/base/types.h"

namespace engine {

/// Rows for the products: what a count is filled up to.
inline int padded_rows(int rows) {
  return (rows + 31) / 32 * 32;
}

template <typename T>
class VocabRows {
 public:
  /// @param math  of the same thread; outlives this
  VocabRows(LinearMath<T>& math, const TrainTable& table, int vocab_size);

  /// Losses of rows [first, first + n) of their logits [n, vocab_size], which may be written over,
  /// and the losses' gradient d_logits [n, vocab_size].
  using Losses = std::function<void(int first, int n, float* logits, T* d_logits)>;
  /// @param x             [n, width], n a multiple of 32
  /// @param known_logits  [n, vocab_size] where they are known already; else null
  /// @param dx            [n, width] the gradient of the losses
  /// @param dw            [vocab_size, width] added to
  void forward_backward(const PackedLinear<T>& w,
                        const T* x,
                        int width,
                        int n,
                        const float* known_logits,
                        const Losses& losses,
                        T* dx,
                        float* dw);
  /// Against a target each.
  /// @param x       [n, width], n a multiple of 32
  /// @param target  [n];  weight [n], 0: no loss
  /// @param dx      [n, width] the gradient of the weighted losses
  /// @param dw      [vocab_size, width] added to
  /// @param loss    [n] -log p of the target, unweighted; 0 where the weight is
  void forward_backward(const PackedLinear<T>& w,
                        const T* x,
                        int width,
                        std::span<const TokenId> target,
                        std::span<const float> weight,
                        T* dx,
                        float* dw,
                        std::span<float> loss);
  /// Calls `row` for each of n rows with its logits, [vocab_size].
  void logits(const PackedLinear<T>& w,
              const T* x,
              int width,
              int n,
              const std::function<void(int, std::span<const float>)>& row);

 private:
  LinearMath<T>& math_;
  const TrainOps<T>& ops_;
  int vocab_;
  AlignedVector<float> logits_;
  AlignedVector<T> d_logits_;
};

/// Tokens that a row prefers to this one: of equal logits the lower id comes first.
int rank_of(std::span<const float> logits, TokenId token);

}  // namespace engine

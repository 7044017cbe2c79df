// Multiplies rows by one output matrix, to compute losses with their gradient, or logits. Works in
// chunks of rows, so that the logits of only one chunk are in memory at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/train/core/train_device.h"

namespace engine {

/// Products with one output matrix, in chunks of rows.
class VocabRows {
 public:
  /// Maximum bytes of a chunk's f32 logits, on a device that does not prescribe the rows of a
  /// chunk.
  static constexpr std::int64_t kLogitBytes = 64 << 20;

  /// Allocates all its memory.
  /// @param on           its device outlives this
  /// @param max_rows     maximum rows of a call
  /// @param logit_bytes  maximum bytes of a chunk's logits; the bits of the gradient depend on it
  VocabRows(const TrainDevice& on,
            int vocab_size,
            int max_rows,
            std::int64_t logit_bytes = kLogitBytes);

  /// Computes the losses of rows [first, first + n) from their logits [n, vocab_size], and the
  /// gradient d_logits [n, vocab_size] of the losses.
  using Losses = std::function<void(int first, int n, float* logits, void* d_logits)>;
  /// @param m             [vocab_size, width]
  /// @param x             [n_rows, width]
  /// @param known_logits  [n_rows, vocab_size] if they are known already; else null
  /// @param dx            [n_rows, width] the gradient of the losses
  /// @param gradient      gradient of all weights, to which that of `m` is added; null: `m` is
  ///                      frozen
  void forward_backward(const kernels::TrainWeights& w,
                        const kernels::TrainMatrix& m,
                        const void* x,
                        int n_rows,
                        float* known_logits,
                        const Losses& losses,
                        void* dx,
                        float* gradient);
  /// The same with cross-entropy as the loss of each row.
  /// @param target  [n_rows];  weight [n_rows], 0: no loss;  both on the device
  /// @param loss    [n_rows] -log p of the target, unweighted; 0 if the weight is 0
  void forward_backward(const kernels::TrainWeights& w,
                        const kernels::TrainMatrix& m,
                        const void* x,
                        int n_rows,
                        const std::int32_t* target,
                        const float* weight,
                        void* dx,
                        float* gradient,
                        float* loss);
  /// Calls `rows` for each chunk, rows [first, first + n), with its logits [n, vocab_size] on the
  /// device.
  /// @param x  [n_rows, width], with n_rows rounded up as by TrainDevice::padded()
  void logits(const kernels::TrainWeights& w,
              const kernels::TrainMatrix& m,
              const void* x,
              int n_rows,
              const std::function<void(int first, int n, const float* logits)>& rows);

 private:
  const TrainDevice on_;
  const int vocab_, logit_rows_, gradient_rows_;
  kernels::DeviceBuffer logits_, d_logits_;
};

}  // namespace engine

// Rows through one output matrix on a CUDA device: VocabRows of vocab_rows.h in its memory. The
// logits of all rows live at once only where they are few.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/train/gpu/linear.h"
#include "kernels/cuda/train/kernels.h"
#include "kernels/device.h"

namespace engine {

class GpuVocabRows {
 public:
  /// Of logits that are alive together, unless asked for otherwise.
  static constexpr std::int64_t kLogitBytes = 64 << 20;

  /// Takes all its memory.
  /// @param device       outlives this
  /// @param type         of x, its gradient and products: F32 or BF16
  /// @param max_rows     that are given at a time
  /// @param logit_bytes  of f32 logits that are alive together; the gradient's bits follow it
  GpuVocabRows(kernels::Device& device,
               kernels::DType type,
               int vocab_size,
               int max_rows,
               std::int64_t logit_bytes = kLogitBytes);

  /// Losses of rows [first, first + n) of their logits [n, vocab_size], and the losses' gradient
  /// d_logits [n, vocab_size] of the type.
  using Losses = std::function<void(int first, int n, const float* logits, void* d_logits)>;
  /// @param m   [vocab_size, width], whose gradient is added to
  /// @param x   [n_rows, width]
  /// @param known_logits  [n_rows, vocab_size] where they are known already; else null
  /// @param dx  [n_rows, width] the gradient of the losses
  void forward_backward(const GpuWeights& w,
                        const GpuMatrix& m,
                        const void* x,
                        int n_rows,
                        const float* known_logits,
                        const Losses& losses,
                        void* dx,
                        float* gradient);
  /// Against a target each.
  /// @param target  [n_rows];  weight [n_rows], 0: no loss;  on the device
  /// @param loss    [n_rows] -log p of the target, unweighted; 0 where the weight is
  void forward_backward(const GpuWeights& w,
                        const GpuMatrix& m,
                        const void* x,
                        int n_rows,
                        const std::int32_t* target,
                        const float* weight,
                        void* dx,
                        float* gradient,
                        float* loss);
  /// Calls `rows` for rows [first, first + n) with their logits [n, vocab_size], on the device.
  void logits(const GpuWeights& w,
              const GpuMatrix& m,
              const void* x,
              int n_rows,
              const std::function<void(int first, int n, const float* logits)>& rows);

 private:
  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const GpuLinear linear_;
  const kernels::DType type_;
  const int vocab_, rows_at_once_;
  kernels::DeviceBuffer logits_, d_logits_;  // of rows_at_once_
};

}  // namespace engine

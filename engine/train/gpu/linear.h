// A linear layer's three products on a CUDA device, y = x W^T, dx = dy W, dW += dy^T x: LinearMath
// of ops/linear.h with everything in the device's memory. They take any number of rows.
#pragma once

#include <cstdint>

#include "engine/train/gpu/state.h"
#include "kernels/cuda/train/kernels.h"
#include "kernels/device.h"

namespace engine {

/// A matrix of the weights: its place in their layout, [n_out, n_in].
struct GpuMatrix {
  std::int64_t at;
  int n_out, n_in;
};

class GpuLinear {
 public:
  /// @param device  outlives this
  /// @param type    of x, y and their gradients unless a name says f32: F32 or BF16
  GpuLinear(kernels::Device& device, kernels::DType type)
      : device_(device), kernels_(kernels::train_kernels(device)), type_(type) {}

  /// y [rows, n_out] = x W^T
  void forward(const GpuWeights& w, const GpuMatrix& m, const void* x, int rows, void* y) const;
  /// y [rows, n_out] f32 = x W^T, added to y if `add`.
  void forward_f32(
      const GpuWeights& w, const GpuMatrix& m, const void* x, int rows, float* y, bool add) const;
  /// dx [rows, n_in] = dy W
  void backward_input(
      const GpuWeights& w, const GpuMatrix& m, const void* dy, int rows, void* dx) const;
  /// dx [rows, n_in] f32 = dy W
  void backward_input_f32(
      const GpuWeights& w, const GpuMatrix& m, const void* dy, int rows, float* dx) const;
  /// dW += dy^T x, in the gradient of all weights.
  void backward_weight(
      const GpuMatrix& m, const void* dy, const void* x, int rows, float* gradient) const;

 private:
  const void* rounded(const GpuWeights& w, const GpuMatrix& m) const;

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const kernels::DType type_;
};

}  // namespace engine

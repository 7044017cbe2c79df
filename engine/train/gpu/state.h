// What a training on a GPU has there from its first step to its last: weights, moments, the
// gradient and the losses of a step.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/train/core/parameters.h"
#include "engine/train/core/training_steps.h"
#include "kernels/cuda/train/kernels.h"
#include "kernels/device.h"

namespace engine {

/// Weights on the device, as their layout has them.
struct GpuWeights {
  const float* masters = nullptr;
  const void* rounded = nullptr;  // the same in the activations' type; of f32 the masters
};

class GpuTrainState {
 public:
  /// Takes all its memory, and copies weights and moments there.
  /// @param device  outlives this
  /// @param state   of as many elements as the last run ends with; outlives this
  /// @param type    of activations and products: F32 or BF16
  /// @param n_losses  losses that a step may have, at most
  GpuTrainState(kernels::Device& device,
                TrainState state,
                std::vector<ParameterRun> runs,
                kernels::DType type,
                std::int64_t n_losses);

  GpuWeights weights() const;
  float* gradient() const { return gradient_.f32(); }  // [n], zero when a step begins
  float* losses() const;                               // [n_losses], what a step writes there

  /// AdamW by the gradient, which is zero afterwards. Waits once.
  /// @param step  from 1
  /// @param loss  the first so many losses
  /// @return  the gradient's norm before clipping. Where that or a loss is no finite number it is
  ///          NaN, and no weight and no moment changed
  double update(std::int64_t step, double lr, std::span<float> loss);
  /// Brings weights and moments, as they stand, to the host's memory.
  void fetch();

 private:
  std::vector<std::pair<std::vector<float>*, kernels::DeviceBuffer*>> arrays();
  void adamw(double norm, std::int64_t step, double lr);

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  TrainState state_;
  std::vector<ParameterRun> runs_;
  kernels::DType type_;
  std::int64_t n_, n_sums_;
  kernels::DeviceBuffer results_;  // the gradient's squares in parts, then losses
  std::vector<char> arrived_;
  kernels::DeviceBuffer adam_;  // a step's update of weights that do not decay, of those that do
  kernels::DeviceBuffer parameters_, mean_, square_, gradient_, rounded_;
};

}  // namespace engine

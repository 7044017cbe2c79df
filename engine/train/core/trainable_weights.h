// Weights, moments and gradients of a training. On the CPU they are in host memory, with a gradient
// for each shard; on a GPU they are in its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/train/core/optimizer.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/train_device.h"
#include "engine/train/core/workers.h"
#include "engine/train/ops/linear.h"
#include "kernels/device.h"

namespace engine {

/// True if no value is infinite or NaN.
bool all_finite(std::span<const float> values);

/// Weights and moments of a run, in the host's memory.
struct TrainState {
  std::vector<float>& parameters;  // all weights, in the order of their layout
  Optimizer& optimizer;
};

/// The compute mode and the processors of a training; they outlive it.
struct TrainPlace {
  Compute compute;
  Workers& workers;                   // the CPU's threads
  int shards = 1;                     // CPU: parts of a step's batch whose gradients are summed
  kernels::Device* device = nullptr;  // a CUDA device for this training alone; null: the CPU
};

/// The arrays that a training updates, how they are divided, and the size of a step.
struct TrainedArrays {
  TrainState state;
  std::vector<ParameterRun> runs;
  std::vector<kernels::TrainMatrix> matrices;  // the matrices that products read
  std::int64_t n_losses = 0;                   // maximum number of losses of a step (CUDA)
};

/// The weights in training on one kind of device.
class TrainableWeights {
 public:
  virtual ~TrainableWeights() = default;
  /// The arithmetic in words: "f32 with 2 shards, elementwise avx2".
  virtual std::string name() const = 0;
  /// True on the CPU, false on a CUDA device.
  virtual bool on_cpu() const = 0;

  /// Shards of a step, each with a gradient of its own.
  virtual int n_shards() const = 0;
  /// The device that a shard's passes run on.
  virtual TrainDevice device(int shard) const = 0;
  /// Calls work(shard) for every shard, on the CPU in several threads.
  virtual void for_shards(const std::function<void(int)>& work) = 0;

  /// The current weights, for passes.
  virtual kernels::TrainWeights weights() const = 0;
  /// The f32 weights on the device, to be changed between steps; call pack() afterwards.
  virtual float* masters() = 0;
  /// Prepares changed f32 weights for products.
  virtual void pack() = 0;
  /// Weights that stay constant: a frozen teacher's.
  /// @param parameters  outlive this
  /// @param matrices    that products read; empty: the layout is that of the trained weights
  virtual kernels::TrainWeights frozen(const std::vector<float>& parameters,
                                       const std::vector<kernels::TrainMatrix>& matrices = {}) = 0;
  /// Constant values on the device, such as an embedding. @param values  outlive this
  virtual const float* constant(const std::vector<float>& values, const char* what) = 0;

  /// The gradient of a shard, [n weights]; zero when a step begins.
  virtual float* gradient(int shard) = 0;
  /// Memory on the device for the n losses of a step, all shards together.
  virtual float* losses(std::int64_t n) = 0;

  /// One AdamW update by the sum of the shards' gradients, which it sets to zero. Waits once.
  /// @param step  from 1
  /// @param loss  receives the first loss.size() losses of the step
  /// @return  the gradient's norm before clipping; NaN if the norm or a loss is not finite, and
  ///          then weights and moments are left unchanged
  virtual double update(std::int64_t step, double lr, std::span<float> loss) = 0;
  /// Copies weights and moments to the host's TrainState.
  virtual void fetch() = 0;
  /// Notes that the device has made since the last call, one line each.
  virtual std::vector<std::string> take_notes() { return {}; }
};

/// Allocates all its memory, and starts from arrays.state.
/// @throws Error(Device or Resources)  without cuBLAS, or with too little memory
std::unique_ptr<TrainableWeights> trainable_weights(const TrainPlace& place, TrainedArrays arrays);
/// The weights on the CPU; as trainable_weights().
std::unique_ptr<TrainableWeights> cpu_weights(const TrainPlace& place, TrainedArrays arrays);
/// The weights on place.device; as trainable_weights().
std::unique_ptr<TrainableWeights> device_weights(const TrainPlace& place, TrainedArrays arrays);

}  // namespace engine

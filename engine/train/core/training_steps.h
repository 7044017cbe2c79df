// What one step of training learns from, and whatever computes it: the CPU's shards or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/ops/linear.h"
#include "engine/train/core/optimizer.h"
#include "engine/train/core/packing.h"
#include "engine/train/run/recipe.h"
#include "engine/train/core/transformer.h"
#include "engine/train/core/workers.h"
#include "kernels/device.h"

namespace engine {

/// The packed rows of one step laid end to end.
struct StepBatch {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;  // of each row of the context apart: begin and end in all rows
  std::vector<std::size_t> first_segment;  // [n packed rows + 1]
  double weight_sum = 0;
  std::int64_t n_tokens = 0;
};
StepBatch lay_out(const std::vector<PackedRow>& rows, int context);

bool all_finite(std::span<const float> values);

/// Some packed rows of a batch as a pass takes them, weights as shares of the batch's.
class BatchPart {
 public:
  /// Packed rows [first, last). The rows borrow from this and from the batch.
  TrainRows take(const StepBatch& batch, int context, int first, int last);

 private:
  std::vector<float> weight_;
  std::vector<Segment> segments_;
};

/// Weights and moments of a run, in the host's memory.
struct TrainState {
  std::vector<float>& parameters;  // as ParameterLayout lays them
  Optimizer& optimizer;
};

class TrainSteps {
 public:
  virtual ~TrainSteps() = default;
  /// What it computes with, for a person.
  virtual std::string name() const = 0;
  /// Whether update() takes the run's threads.
  virtual bool uses_workers() const = 0;
  /// One update by the batch.
  /// @param step  from 1
  /// @param loss  [rows of the batch] of each row, unweighted
  /// @return  the gradient's norm before clipping. Where that or a loss is no finite number it is
  ///          NaN, and no weight and no moment changed
  virtual double update(const StepBatch& batch,
                        std::int64_t step,
                        double lr,
                        std::vector<float>& loss) = 0;
  /// What the device did otherwise than asked since this was last called, a line each.
  virtual std::vector<std::string> take_notes() { return {}; }
  /// Brings weights and moments, as they stand, to the host's memory.
  virtual void fetch() = 0;
};

/// Begins from the state, and works in it.
/// @param state, workers  outlive the steps
/// @param shards          parts of a batch that are summed apart
std::unique_ptr<TrainSteps> cpu_steps(
    const TrainRecipe& recipe, Compute compute, int shards, TrainState state, Workers& workers);
/// Begins from the state, which it writes again when asked to.
/// @param device   a CUDA device, for these steps alone
/// @param compute  F32Cuda or Bf16Cuda
/// @throws Error(Device or Resources)  if it has no cuBLAS, or too little memory
std::unique_ptr<TrainSteps> gpu_steps(const TrainRecipe& recipe,
                                      Compute compute,
                                      TrainState state,
                                      std::unique_ptr<kernels::Device> device);

}  // namespace engine

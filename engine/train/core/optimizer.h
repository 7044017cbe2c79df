// AdamW over all weights, the gradients of the shards summed first, clipped by their global norm.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/train/ops/train_ops.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/workers.h"

namespace engine {

struct OptimizerSettings {
  double beta1 = 0.9, beta2 = 0.95, weight_decay = 0.05, clip = 1;
};

class Optimizer {
 public:
  Optimizer(const OptimizerSettings& settings,
            std::vector<ParameterRun> runs,
            const TrainTable& table);

  std::vector<float> mean, square;  // AdamW's moments, [n parameters]

  /// What AdamW is told at a step.
  /// @param norm  of the gradient, which is clipped by it
  AdamStep adam_step(double norm, std::int64_t step, double lr, bool decays) const;

  /// One update. Sums run over fixed blocks, so the result does not depend on the threads.
  /// @param gradients  one array a shard, [n]; all zero afterwards
  /// @param step       from 1
  /// @return  the norm of the summed gradient before clipping; if it is not finite, no weight and
  ///          no moment changed
  double update(std::vector<float>& parameters,
                std::vector<std::vector<float>>& gradients,
                std::int64_t step,
                double lr,
                Workers& workers);
  /// Of a step that is not taken: its gradients become zero. @return  NaN, as of such a norm
  double leave_out(std::vector<std::vector<float>>& gradients, Workers& workers) const;

 private:
  struct Block {
    std::int64_t begin, end;
    bool decays;
  };
  OptimizerSettings settings_;
  const ParameterOps& ops_;
  std::vector<Block> blocks_;
};

}  // namespace engine

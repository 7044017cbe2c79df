// AdamW on the CPU: sums the gradients of the shards, clips the sum by its global norm, and updates
// all weights.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/train/core/parameters.h"
#include "engine/train/core/workers.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

/// Hyperparameters of AdamW.
struct OptimizerSettings {
  double beta1 = 0.9, beta2 = 0.95, weight_decay = 0.05, clip = 1;
};

/// AdamW with its moments.
class Optimizer {
 public:
  /// @param runs  ranges of weights with and without decay that cover all weights
  Optimizer(const OptimizerSettings& settings,
            std::vector<ParameterRun> runs,
            const TrainTable& table);

  std::vector<float> mean, square;  // AdamW's moments, [n parameters]

  /// The constants of one update.
  /// @param norm  norm of the gradient, for clipping
  /// @param step  from 1
  AdamStep adam_step(double norm, std::int64_t step, double lr, bool decays) const;

  /// One update. Sums run over fixed blocks, so the result does not depend on the threads.
  /// @param gradients  one gradient [n] per shard; set to zero
  /// @param step       from 1
  /// @return  the norm of the summed gradient before clipping. If it is not finite, weights and
  ///          moments are left unchanged
  double update(std::vector<float>& parameters,
                std::vector<std::vector<float>>& gradients,
                std::int64_t step,
                double lr,
                Workers& workers);
  /// Skips a step: clears its gradients. @return  NaN, as the norm
  double skip_step(std::vector<std::vector<float>>& gradients, Workers& workers) const;

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

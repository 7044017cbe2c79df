// Weights in training that consist of fixed weights and low-rank updates, W + B A. A pass reads the sum and gives its gradient
// dW, as for a model all of whose weights are trained. After every step
//   dA = B^T dW, dB = dW A^T,  AdamW changes A and B,  the sum is computed again
// which takes as much time as some tens of rows of a pass. Weights without an update stay as they are.
#pragma once

#include <memory>
#include <vector>

#include "engine/train/core/trainable_weights.h"
#include "engine/train/lora/low_rank.h"

namespace engine {

/// The fixed weights; outlive the training.
struct LowRankBase {
  const std::vector<float>& weights;                  // in the order of ParameterLayout
  const std::vector<kernels::TrainMatrix>& matrices;  // the matrices that products read
};

/// Allocates all its memory, and starts from the updates in `state`.
/// @param state     updates of this layout, and their optimizer
/// @param n_losses  as TrainedArrays
/// @throws  as trainable_weights()
std::unique_ptr<TrainableWeights> low_rank_weights(const TrainPlace& place,
                                                   const LowRankLayout& layout,
                                                   const LowRankBase& base,
                                                   TrainState state,
                                                   std::int64_t n_losses);

}  // namespace engine

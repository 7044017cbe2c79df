// One step of training a model: concatenates packed texts into a batch, and updates the weights by
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/train/core/packing.h"
#include "engine/train/core/trainable_weights.h"
#include "engine/train/core/transformer.h"
#include "engine/train/run/recipe.h"

namespace engine {

struct SharedEmbedding;  // engine/train/draft/shared_embedding.h

/// The packed rows of one step, concatenated.
struct StepBatch {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;  // of all packed rows; begin and end are rows of the batch
  std::vector<std::size_t> first_segment;  // [n packed rows + 1] the first segment of each
  double weight_sum = 0;
  std::int64_t n_tokens = 0;
};
/// Concatenates packed rows.
StepBatch lay_out(const std::vector<PackedRow>& rows, int context);

/// The input of a pass: a range of the packed rows of a batch. The weights of a batch sum to 1.
class BatchPart {
 public:
  /// Selects packed rows [first, last). The result refers to memory of this object and of the
  /// batch.
  TrainRows take(const StepBatch& batch, int context, int first, int last);

 private:
  std::vector<float> weight_;
  std::vector<Segment> segments_;
};

/// Updates a model by batches of packed texts.
class TrainSteps {
 public:
  /// Starts from the state. Allocates all memory.
  /// @param place, state, shared  outlive the steps
  /// @param shared  of a draft that shares its target's embedding, else null
  /// @throws Error(Device or Resources)  without cuBLAS, or with too little memory
  TrainSteps(const TrainRecipe& recipe,
             const TrainPlace& place,
             TrainState state,
             const SharedEmbedding* shared = nullptr);

  /// The weights that the steps update.
  TrainableWeights& weights() { return *weights_; }
  /// One update by the batch.
  /// @param step  from 1
  /// @param loss  [rows of the batch] receives each row's loss, unweighted
  /// @return  the gradient's norm before clipping; NaN if the norm or a loss is not finite, and
  ///          then weights and moments are left unchanged
  double update(const StepBatch& batch, std::int64_t step, double lr, std::vector<float>& loss);

 private:
  int context_, n_rows_, rows_a_pass_;
  std::unique_ptr<TrainableWeights> weights_;
  std::vector<BatchPart> parts_;   // one per shard
  std::vector<TrainPass> passes_;  // one per shard
};

}  // namespace engine

// Steps of consistency training: the batch of a step, its refinement by Jacobi iterations, and its
// update.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/cllm/consistency.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/core/trainable_weights.h"
#include "engine/train/core/transformer.h"

namespace engine {

struct SharedEmbedding;  // engine/train/draft/shared_embedding.h

/// A number for each part of the loss.
using PartSums = std::array<double, kLossParts>;

/// The concatenated segments of one pass.
struct PassRows {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;
  std::vector<RowView> views;
  std::vector<RowGoal> goals;
  std::vector<LossPart> part;

  /// Number of rows.
  int n_rows() const { return static_cast<int>(token.size()); }
  /// Appends a segment.
  void add(const GuidedRows& rows);
  /// Appends rows without loss until the number of rows is a multiple of `rows`.
  void pad(int rows);
  /// Multiplies the weight of each row by the factor of its part of the loss.
  void scale(const std::array<float, kLossParts>& row_scale);
  /// The rows as input of a pass. They refer to the vectors of this object.
  TrainRows rows() const { return {token, target, weight, pos, segments, views, goals}; }
};

/// Selects from segments first, first + stride, .. those for which `wanted` is true, and groups
/// them, in order, into passes of at most `most` rows.
/// @param send  called with each pass, which it may change, and the indices of its segments
void for_each_pass(const std::vector<GuidedRows>& segments,
                   int first,
                   int stride,
                   int most,
                   bool (*wanted)(const GuidedRows&),
                   const std::function<void(PassRows&, const std::vector<std::size_t>&)>& send);
/// True unless the segment is empty. A `wanted` of for_each_pass().
bool has_rows(const GuidedRows& rows);
/// Calls refine_chains() for each segment of a pass.
/// @param picks  the token predicted by each row of the pass that holds them
void refine_segments(std::vector<GuidedRows>& segments,
                     const std::vector<std::size_t>& in_pass,
                     std::span<const TokenId> picks,
                     const ConsistencyLoss& loss);

/// The segments of a step.
struct GuidedBatch {
  std::vector<GuidedRows> segments;
  /// Factor of each part: a row's weight in the loss is its own weight times this factor.
  std::array<float, kLossParts> row_scale{};
};

/// Input of CllmSteps; must outlive it.
struct CllmStart {
  const CllmRecipe& recipe;
  const ModelConfig& model;
  const std::vector<float>& target;         // the target's weights; a frozen teacher uses them
  TrainState state;                         // of all weights, or of the low-rank updates
  const SharedEmbedding* shared = nullptr;  // of a model without embedding, else null
};

/// Updates a model by batches of rows with losses of several kinds.
class CllmSteps {
 public:
  /// Starts from the state. Allocates all memory.
  /// @throws Error(Device or Resources)  without cuBLAS, or with too little memory
  CllmSteps(const CllmStart& start, const TrainPlace& place);

  /// The weights that the steps update.
  TrainableWeights& weights() { return *weights_; }
  /// Runs Jacobi iterations with the current weights until no chain needs more.
  void refine(std::vector<GuidedRows>& segments);
  /// One update by the batch.
  /// @param step    from 1
  /// @param losses  receives for each part the sum of its rows' losses, each multiplied by the row's
  ///                weight in the part
  /// @return  the gradient's norm before clipping; NaN if the norm or a loss is not finite, and
  ///          then weights and moments are left unchanged
  double update(const GuidedBatch& batch, std::int64_t step, double lr, PartSums& losses);

 private:
  /// A pass of a step, and the weight of each of its rows within its part.
  struct Pass {
    PassRows rows;
    std::vector<float> counted;
    std::int64_t first = 0;  // index of its first row among the losses of the step
  };
  std::vector<std::vector<Pass>> passes_of(const GuidedBatch& batch) const;

  const CllmRecipe& recipe_;
  std::unique_ptr<TrainableWeights> weights_;
  int rows_a_pass_;
  kernels::TrainWeights teacher_;  // a frozen one
  bool has_frozen_teacher_ = false;
  std::vector<TrainPass> passes_;  // of each shard
};

}  // namespace engine

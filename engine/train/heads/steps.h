// Operations of one training step of draft heads: updates the weights by a batch of texts, and
// ranks the training targets in the heads' distributions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/train/core/trainable_weights.h"
#include "engine/train/heads/pass.h"

namespace engine {

/// Sizes and constants of a run.
struct HeadsRunShape {
  const HeadsConfig& config;
  const std::vector<float>& embedding;  // [vocab_size, dim] the target's; read by Chimera
  const std::vector<float>& output;     // [n_outputs, dim] the target's; read with target_output
  FirstLayer* first_layer = nullptr;    // the target's; read with by_first_layer
  int longest_rows = 0;                 // rows_of() of the longest text
  int batch_texts = 0;                  // maximum number of texts of a step
  int longest_places = 0;               // n_places(0) of such a text
};

/// Updates draft heads by batches of texts.
class HeadsSteps {
 public:
  /// Starts from the state. Allocates all memory.
  /// @param shape, place, state  outlive the steps
  /// @throws Error(Device or Resources)  without cuBLAS, or with too little memory
  HeadsSteps(const HeadsRunShape& shape, const TrainPlace& place, TrainState state);

  /// The weights that the steps update.
  TrainableWeights& weights() { return *weights_; }
  /// One update by the texts.
  /// @param step  from 1
  /// @param sums  the losses of the step's rows are added to it
  /// @return  the gradient's norm before clipping; NaN if the norm or a loss is not finite, and
  ///          then weights and moments are left unchanged
  double update(std::span<const HeadsText> texts,
                const HeadsLoss& loss,
                std::int64_t step,
                double lr,
                HeadsSums& sums);
  /// Counts the rank of each training target in its head's distribution, with the current weights.
  /// @param n_valid, self_fed  as of HeadsPass::rank()
  void rank(std::span<const HeadsText> texts, int n_valid, bool self_fed, MeasuredRanks& ranks);

 private:
  /// Passes that write their losses to one array, ordered by head.
  struct LossBlock {
    std::int64_t n_rows = 0;  // rows of one head
    std::vector<std::span<const HeadsText>> passes;
  };
  std::vector<LossBlock> blocks_of(int shard, std::span<const HeadsText> texts) const;
  std::int64_t n_losses(const std::vector<LossBlock>& blocks) const;
  void run(int shard, const std::vector<LossBlock>& blocks, const HeadsLoss& loss, float* losses);
  HeadsSums sums_of(const std::vector<LossBlock>& blocks, const float* losses) const;

  const HeadsConfig config_;
  const int losses_a_row_;
  std::unique_ptr<TrainableWeights> weights_;
  int pass_rows_;
  std::vector<std::unique_ptr<HeadsPass>> passes_;  // one per shard
  std::vector<float> losses_;                       // losses of a step
};

}  // namespace engine

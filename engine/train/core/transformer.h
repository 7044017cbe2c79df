// Forward and backward of a LLaMA-family model for training. The forward keeps the activations of
// every layer; one operation computes the cross-entropy and its gradient; the backward computes the
// gradient of every weight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/types.h"
#include "engine/checkpoint/config.h"
#include "engine/train/core/block.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/train_device.h"
#include "engine/train/core/vocab_rows.h"
#include "engine/train/ops/train_ops.h"

namespace engine {

using kernels::RowGoal;

/// Rows of one pass: several packed texts that do not attend to each other. All arrays [n_rows].
struct TrainRows {
  std::span<const TokenId> token;
  std::span<const TokenId> target;      // the next token, or its row in a shared output matrix
  std::span<const float> weight;        // weight of the row's loss; 0: no loss
  std::span<const std::int32_t> pos;    // starts at 0 in every text
  std::span<const Segment> segments;    // the rows of each text
  std::span<const RowView> views;       // empty: causal within the segment
  std::span<const RowGoal> goals = {};  // empty: every row's goal is its target
  /// Number of rows.
  int n_rows() const { return static_cast<int>(token.size()); }
};

/// Checks that every token is in the vocabulary; called before anything is computed or launched.
/// @throws ContractError
void expect_tokens(std::span<const TokenId> tokens, int vocab_size);
/// The same check for the tokens of the rows, and for each target that a row's loss uses.
/// @param n_outputs  number of rows of the output matrix; 0: vocab_size
void expect_tokens(const TrainRows& rows, int vocab_size, int n_outputs = 0);

/// Every matrix of a model.
std::vector<kernels::TrainMatrix> matrices_of(const ModelConfig& config,
                                              const ParameterLayout& layout);

/// Rows with the same token, in order.
struct TokenGroups {
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> begin;  // [n_groups + 1]
  /// Number of groups.
  int n_groups() const { return static_cast<int>(begin.size()) - 1; }
};
/// Groups rows by their tokens. @param rows  the rows to group
TokenGroups token_groups_of(std::span<const TokenId> token, std::vector<std::int32_t> rows);
/// The same for the rows of a pass; leaves out rows outside every segment.
TokenGroups token_groups_of(const TrainRows& rows);

/// The embedding and the output matrix that a model shares with its target, on the pass's device.
struct FrozenEmbedding {
  const float* embedding = nullptr;  // [vocab_size, dim]
  kernels::TrainWeights output;      // [n_outputs, dim] at offset 0
};

/// Options of a TrainPass.
struct PassOptions {
  std::int64_t logit_bytes = VocabRows::kLogitBytes;
  /// True: allocates memory for the logits of all rows, which rows with teachers and logits() need.
  bool keeps_logits = false;
  std::optional<FrozenEmbedding> frozen = {};  // of a model that shares them, which needs it
};

/// Forward and backward of one model on one device.
class TrainPass {
 public:
  /// Allocates all memory of the pass.
  /// @param on        its device outlives this
  /// @param max_rows  rows a pass may have; a multiple of on.ops.row_multiple
  TrainPass(const TrainDevice& on,
            const ModelConfig& config,
            const ParameterLayout& layout,
            int max_rows,
            const PassOptions& options = {});

  /// Forward and backward of the rows, whose number is a multiple of row_multiple. Does not wait
  /// for the device.
  /// @param gradient  [layout.n] on the device; the gradient of this pass is added to it
  /// @param loss      [n_rows] on the device, unweighted: -log p of the row's target, or the loss
  ///                  towards its goal; 0 if the row's weight is 0
  /// @param teacher   weights that compute the teachers' distributions, by a forward of the same
  ///                  rows; null: the teachers are the logits of this forward, held constant
  void forward_backward(const kernels::TrainWeights& weights,
                        const TrainRows& rows,
                        float* gradient,
                        float* loss,
                        const kernels::TrainWeights* teacher = nullptr);
  /// Computes only the forward, and waits for the device.
  /// @return  the most likely token after each row, with ties to the lowest id; 0 if a logit is not
  ///          finite
  std::vector<TokenId> likeliest(const kernels::TrainWeights& weights, const TrainRows& rows);
  /// Computes only the forward, and waits for the device. Needs keeps_logits.
  /// @return  [n_rows, vocab_size]
  std::vector<float> logits(const kernels::TrainWeights& weights, const TrainRows& rows);

 private:
  void take_rows(const TrainRows& rows);
  void take_goals(std::span<const RowGoal> goals);
  void run_layers(const kernels::TrainWeights& w);
  void keep_logits(const kernels::TrainWeights& w);
  /// The weights of the output matrix.
  const kernels::TrainWeights& head_of(const kernels::TrainWeights& w) const {
    return frozen_ ? frozen_->output : w;
  }
  /// @param known_logits  of all rows, if they are known already; else null
  void backward_lm_head(const kernels::TrainWeights& w,
                        float* known_logits,
                        float* gradient,
                        float* loss);

  const TrainDevice on_;
  const ModelConfig config_;
  const ParameterLayout layout_;
  const int max_rows_;
  const std::optional<FrozenEmbedding> frozen_;
  const kernels::TrainMatrix lm_head_;
  int n_ = 0, n_groups_ = 0;                 // of this pass
  bool has_goals_ = false, taught_ = false;  // the rows have goals besides targets; have teachers
  std::vector<KeptBlock> layers_;
  BlockPass block_;
  VocabRows vocab_;
  kernels::DeviceBuffer token_, target_, weight_, goal_, group_row_, group_begin_;
  kernels::DeviceBuffer kept_logits_;  // [rows, vocab_size] f32; empty unless keeps_logits
  kernels::DeviceBuffer x_final_, r_final_, h_final_;
  kernels::DeviceBuffer d_h_, dx_, dx_rounded_;
};

}  // namespace engine

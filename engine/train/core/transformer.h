// The LLaMA block for training: forward with everything kept that the backward needs, the fused
// cross-entropy, and the backward down to the gradient of every weight.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/core/block.h"
#include "engine/train/ops/linear.h"
#include "engine/train/ops/train_ops.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/vocab_rows.h"

namespace engine {

/// What a row's distribution is pulled towards.
struct RowGoal {
  /// Target: the row's target token. Forward, Reverse: a teacher's distribution p, by the divergence
  /// sum of p log(p / q) or sum of q log(q / p) of the row's own distribution q from it.
  enum class Kind : std::uint8_t { Target, Forward, Reverse } kind = Kind::Target;
  float smoothing = 0;       // of Target: share of the label that is spread over all tokens
  std::int32_t teacher = 0;  // of the others: the row of this pass whose distribution is p
};

/// Rows of one pass: several packed texts, none of which sees another. All arrays [n_rows].
struct TrainRows {
  std::span<const TokenId> token;
  std::span<const TokenId> target;      // the token that should follow
  std::span<const float> weight;        // of the row's loss; 0: no loss
  std::span<const std::int32_t> pos;    // restarts with every text
  std::span<const Segment> segments;    // rows of one text each
  std::span<const RowView> views;       // empty: causal within the segment
  std::span<const RowGoal> goals = {};  // empty: every row's target
  /// [n_rows, vocab_size] where teachers' distributions come from. Empty: this forward's own logits, held
  /// constant: nothing flows back through a teacher.
  std::span<const float> teacher_logits = {};
  int n_rows() const { return static_cast<int>(token.size()); }
};

/// Every row's token is one of the vocabulary's; to be asked before anything is computed or
/// launched.
/// @throws ContractError
void expect_tokens(std::span<const TokenId> tokens, int vocab_size);
/// The same, and of the target of each row whose loss counts and is the target's.
void expect_tokens(const TrainRows& rows, int vocab_size);

/// Weights as the products read them; made again from the f32 masters after every update.
template <typename T>
class PackedWeights {
 public:
  PackedWeights(const ModelConfig& config,
                const ParameterLayout& layout,
                const std::vector<float>& parameters,
                const LinearMath<T>& math);
  /// Matrices are independent of each other, so threads may share the work: matrix i of n_matrices.
  void repack(int i, const LinearMath<T>& math);
  int n_matrices() const { return static_cast<int>(all_.size()); }

  std::vector<PackedBlock<T>> layers;
  std::unique_ptr<PackedLinear<T>> lm_head;

 private:
  std::vector<PackedLinear<T>*> all_;
};

/// One thread's forward and backward: its activations, its scratch, its products.
template <typename T>
class TrainPass {
 public:
  /// @param max_rows  rows a pass may have; a multiple of 32
  TrainPass(const ModelConfig& config,
            const ParameterLayout& layout,
            std::unique_ptr<LinearMath<T>> math,
            const TrainTable& table,
            int max_rows);
  ~TrainPass();

  /// Forward and backward of the rows (a multiple of 32).
  /// @param gradient  [layout.n] f32, added to
  /// @param loss      [n_rows] of each row, unweighted: -log p of its target, or what its goal
  ///                  says; 0 where the weight is
  void forward_backward(const std::vector<float>& parameters,
                        const PackedWeights<T>& weights,
                        const TrainRows& rows,
                        float* gradient,
                        std::span<float> loss);
  /// Forward alone. @param logits  [n_rows, vocab_size] f32
  void forward(const std::vector<float>& parameters,
               const PackedWeights<T>& weights,
               const TrainRows& rows,
               std::span<float> logits);

 private:
  struct Buffers;
  void run_layers(const std::vector<float>& parameters,
                  const PackedWeights<T>& weights,
                  const TrainRows& rows);
  void losses_of_rows(
      const TrainRows& rows, int first, int n, float* logits, T* d_logits, std::span<float> loss);
  void backward_lm_head(const PackedWeights<T>& weights,
                        const TrainRows& rows,
                        float* gradient,
                        std::span<float> loss);

  const ModelConfig config_;
  const ParameterLayout layout_;
  std::unique_ptr<LinearMath<T>> math_;
  const TrainOps<T>& ops_;
  const ParameterOps& parameter_ops_;
  BlockPass<T> block_;
  VocabRows<T> vocab_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace engine

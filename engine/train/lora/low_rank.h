// Low-rank updates of a model in training (LoRA, Hu et al. 2021, arXiv:2106.09685): the matrix W [n_out, n_in] of a
// projection becomes W + B A with A [rank, n_in] and B [n_out, rank]. Only A and B are trained.
//   start   as in peft: A is uniform between -1 / sqrt(n_in) and 1 / sqrt(n_in), B is zero
//   scale   1, so lora_alpha is the rank. Under AdamW another scale acts like another learning rate
//   memory  B is stored transposed, [rank, n_out]. The rows of A and B^T are then like the inputs and output gradients of
//           `rank` rows of a training pass, and its products give all that is needed (low_rank_weights.h)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/adapter/lora_adapter.h"
#include "engine/checkpoint/config.h"
#include "engine/train/core/parameters.h"
#include "engine/train/lora/low_rank_settings.h"
#include "kernels/train_ops.h"

namespace engine {

/// The update of one matrix.
struct LowRankMatrix {
  std::string module;           // "model.layers.0.self_attn.q_proj"
  kernels::TrainMatrix matrix;  // W within the weights of the model
  std::int64_t a, b;            // offsets of A [rank, n_in] and B^T [rank, n_out]
};

/// The layout of all updates of a model in one f32 array.
struct LowRankLayout {
  LowRankLayout(const ModelConfig& config, const LowRank& settings);

  int rank = 0;
  std::vector<LowRankMatrix> matrices;
  std::int64_t n = 0;  // elements of the array

  /// One range, with weight decay.
  std::vector<ParameterRun> runs() const { return {{0, n, true}}; }
  /// The initial updates [n], a function of the seed. They change nothing, because B is zero.
  std::vector<float> initial(std::uint64_t seed) const;
  /// The updates as an adapter, rounded to bf16. Holds a copy of the values.
  /// @param values  [n]
  LoraAdapter adapter(std::span<const float> values, const std::string& base) const;
};

}  // namespace engine

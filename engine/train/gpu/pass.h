// Forward and backward of a LLaMA-family model on a CUDA device: TrainPass of transformer.h with
// everything but tokens, positions and losses in the device's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/gpu/block.h"
#include "engine/train/gpu/linear.h"
#include "engine/train/gpu/vocab_rows.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/transformer.h"
#include "kernels/cuda/train/kernels.h"
#include "kernels/device.h"

namespace engine {

class GpuTrainPass {
 public:
  /// Takes all its memory.
  /// @param device    outlives this
  /// @param type      of activations and products: F32 or BF16
  /// @param max_rows  rows a pass may have
  /// @param logit_bytes  of f32 logits that are alive together; the gradient's bits follow it
  /// @param teaches   whether rows may have teachers: then the logits of max_rows rows have room
  GpuTrainPass(kernels::Device& device,
               const ModelConfig& config,
               const ParameterLayout& layout,
               kernels::DType type,
               int max_rows,
               std::int64_t logit_bytes = GpuVocabRows::kLogitBytes,
               bool teaches = false);

  /// Forward and backward of the rows. Does not wait.
  /// @param rows      without logits of teachers, which are made here
  /// @param gradient  [layout.n] on the device, added to
  /// @param loss      [n_rows] on the device, as of TrainPass
  /// @param teacher   the weights whose forward of the same rows gives teachers' distributions; null: this
  ///                  forward's own, held constant
  void forward_backward(const GpuWeights& weights,
                        const TrainRows& rows,
                        float* gradient,
                        float* loss,
                        const GpuWeights* teacher = nullptr);
  /// Forward alone. Waits for what each row predicts: its likeliest token, of equal ones the lowest;
  /// of a row whose logits are no finite numbers 0.
  std::vector<TokenId> likeliest(const GpuWeights& weights, const TrainRows& rows);

 private:
  void take_rows(const TrainRows& rows);
  void take_goals(std::span<const RowGoal> goals);
  void run_layers(const GpuWeights& w);
  /// @param known_logits  of all rows, where they are known already; else null
  void backward_lm_head(const GpuWeights& w,
                        const float* known_logits,
                        float* gradient,
                        float* loss);

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const ModelConfig config_;
  const ParameterLayout layout_;
  const kernels::DType type_;
  const int max_rows_;
  const GpuMatrix lm_head_;
  int n_ = 0, n_groups_ = 0;                 // of this pass
  bool has_goals_ = false, taught_ = false;  // likewise: other goals than targets; teachers
  std::vector<GpuKeptBlock> layers_;
  GpuBlockPass block_;
  GpuVocabRows vocab_;
  kernels::DeviceBuffer token_, target_, weight_, goal_, group_row_, group_begin_;
  kernels::DeviceBuffer teachers_;  // logits of all rows; nothing where none teaches
  kernels::DeviceBuffer x_final_, r_final_, h_final_;
  kernels::DeviceBuffer d_h_, dx_, dx_rounded_;
};

/// Rows with the same token together, in order.
struct TokenGroups {
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> begin;  // [n_groups + 1]
  int n_groups() const { return static_cast<int>(begin.size()) - 1; }
};
/// @param rows  those that are grouped, of the tokens
TokenGroups token_groups_of(std::span<const TokenId> token, std::vector<std::int32_t> rows);
/// Rows outside every segment are left out.
TokenGroups token_groups_of(const TrainRows& rows);

}  // namespace engine

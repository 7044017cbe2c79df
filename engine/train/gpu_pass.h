// Forward and backward of a LLaMA-family model on a CUDA device: TrainPass of transformer.h with
// everything but tokens, positions and losses in the device's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/config.h"
#include "engine/train/parameters.h"
#include "engine/train/transformer.h"
#include "kernels/cuda/train_kernels.h"
#include "kernels/device.h"

namespace engine {

/// Weights on the device, as ParameterLayout lays them.
struct GpuWeights {
  const float* masters = nullptr;
  const void* rounded = nullptr;  // the same in the activations' type; of f32 the masters
};

class GpuTrainPass {
 public:
  /// Of logits that are alive together, unless asked for otherwise.
  static constexpr std::int64_t kLogitBytes = 64 << 20;

  /// Takes all its memory.
  /// @param device    outlives this
  /// @param type      of activations and products: F32 or BF16
  /// @param max_rows  rows a pass may have
  /// @param logit_bytes  of f32 logits that are alive together; the gradient's bits follow it
  GpuTrainPass(kernels::Device& device,
               const ModelConfig& config,
               const ParameterLayout& layout,
               kernels::DType type,
               int max_rows,
               std::int64_t logit_bytes = kLogitBytes);

  /// Forward and backward of the rows, which have targets and no other goals. Does not wait.
  /// @param gradient  [layout.n] on the device, added to
  /// @param loss      [n_rows] on the device: -log p of each row's target; 0 where its weight is
  void forward_backward(const GpuWeights& weights,
                        const TrainRows& rows,
                        float* gradient,
                        float* loss);

 private:
  // What the forward of one block leaves for its backward; as KeptBlock.
  struct Kept {
    kernels::DeviceBuffer x_attn, x_mlp, r_attn, r_mlp, h_attn, h_mlp, qkv, attended, lse, gate_up;
  };
  // A matrix of the weights: its place in the layout, [n_out, n_in].
  struct Matrix {
    std::int64_t at;
    int n_out, n_in;
  };

  void take_rows(const TrainRows& rows);
  void block_forward(const GpuWeights& w, const LayerAt& at, Kept& kept, float* next);
  void block_backward(const GpuWeights& w, const LayerAt& at, const Kept& kept, float* gradient);
  void backward_lm_head(const GpuWeights& w, float* gradient, float* loss);
  void rope(void* x, float direction);
  const void* rounded(const GpuWeights& w, std::int64_t at) const;
  // The three products of a linear layer over n rows; LinearMath of ops/linear.h.
  void forward(const GpuWeights& w, const Matrix& m, const void* x, int n, void* y);
  void forward_f32(const GpuWeights& w, const Matrix& m, const void* x, int n, float* y, bool add);
  void backward_input(const GpuWeights& w, const Matrix& m, const void* dy, int n, void* dx);
  void backward_weight(const Matrix& m, const void* dy, const void* x, int n, float* gradient);

  kernels::Device& device_;
  const kernels::TrainKernels& kernels_;
  const ModelConfig config_;
  const ParameterLayout layout_;
  const kernels::DType type_;
  const int max_rows_;
  int qkv_width_, out_width_, head_rows_;
  int n_ = 0, n_groups_ = 0, n_positions_ = 0;  // rows of this pass; positions of the table
  std::vector<Kept> layers_;
  kernels::DeviceBuffer token_, target_, weight_, pos_, sight_, group_row_, group_begin_, rope_;
  kernels::DeviceBuffer x_final_, r_final_, h_final_;
  kernels::DeviceBuffer act_, d_act_, d_gate_up_, d_qkv_, d_attended_, d_h_, dx_, dx_rounded_;
  kernels::DeviceBuffer logits_, d_logits_;  // of head_rows_ rows
};

/// Whom each of n rows sees. Rows outside every segment see nobody.
std::vector<kernels::TrainSight> sights_of(const TrainRows& rows);

/// Rows with the same token together, in order; rows outside every segment are left out.
struct TokenGroups {
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> begin;  // [n_groups + 1]
};
TokenGroups token_groups_of(const TrainRows& rows);

}  // namespace engine

// A model's weights as the device wants them: packed, with matrices that read the same rows fused.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/tensor_source.h"
#include "kernels/device.h"

namespace engine {

/// A packed matrix and the memory it lies in.
struct Matrix {
  kernels::DeviceBuffer memory;
  kernels::PackedMatrix view;
};

struct LayerWeights {
  kernels::DeviceBuffer attn_norm, mlp_norm;  // [dim] f32
  Matrix qkv;                                 // [(n_heads + 2 n_kv_heads) head_dim, dim]
  Matrix out;                                 // [dim, n_heads head_dim]
  Matrix gate_up;                             // [2 hidden_dim, dim]
  Matrix down;                                // [dim, hidden_dim]
  kernels::DeviceBuffer qkv_bias, out_bias;   // empty where the model has none
  kernels::DeviceBuffer gate_up_bias, down_bias;
};

struct Weights {
  Matrix embedding;  // [vocab_size, dim]
  Matrix lm_head;    // empty when tied
  kernels::DeviceBuffer norm;
  std::vector<LayerWeights> layers;
  std::int64_t bytes_read = 0;  // by a forward, as packed: all but an untied embedding

  const kernels::PackedMatrix& head() const {
    return lm_head.view.data ? lm_head.view : embedding.view;
  }
};

/// One tensor packed.
Matrix pack_matrix(kernels::Device& device, const Tensor& tensor, kernels::DType dtype);
/// One layer's weights.
/// @param at      before the names of its tensors: "model.layers.3."
/// @param config  its shape
LayerWeights load_layer(kernels::Device& device,
                        const ModelConfig& config,
                        const TensorSource& tensors,
                        const std::string& at,
                        kernels::DType dtype);

/// Reads, fuses and packs. One layer's fused matrix is in host memory at a time.
/// @param progress  bytes read so far and in all, in `dtype`; false cancels
/// @throws Error(Cancelled)  if progress returned false
/// @throws Error(BadInput)   if a tensor is absent or of another shape, or a file was cut meanwhile
Weights load_weights(kernels::Device& device,
                     const ModelConfig& config,
                     const TensorSource& tensors,
                     kernels::DType dtype,
                     const std::function<bool(std::int64_t, std::int64_t)>& progress);

}  // namespace engine

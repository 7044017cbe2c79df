// A model's weights in the device's packed layout. Matrices with the same input are stored as one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/tensor_source.h"
#include "kernels/device.h"

namespace engine {

/// A packed matrix and its memory.
struct Matrix {
  kernels::DeviceBuffer memory;
  kernels::PackedMatrix view;
};

/// Weights of a transformer layer.
struct LayerWeights {
  kernels::DeviceBuffer attn_norm, mlp_norm;            // [dim] f32, with their offset
  kernels::DeviceBuffer attn_post_norm, mlp_post_norm;  // [dim] f32; empty if the model has none
  kernels::DeviceBuffer head_norms;                     // [2, head_dim] f32 of q and k; or empty
  Matrix qkv;                                           // [(n_heads + 2 n_kv_heads) head_dim, dim]
  Matrix out;                                           // [dim, n_heads head_dim]
  Matrix gate_up;                                       // [2 hidden_dim, dim]
  Matrix down;                                          // [dim, hidden_dim]
  kernels::DeviceBuffer qkv_bias, out_bias;             // empty if the model has none
  kernels::DeviceBuffer gate_up_bias, down_bias;
};

/// Weights of a model.
struct Weights {
  Matrix embedding;  // [vocab_size, dim]
  Matrix lm_head;    // empty when tied
  kernels::DeviceBuffer norm;
  std::vector<LayerWeights> layers;
  // packed bytes that a forward reads: all weights except an untied embedding
  std::int64_t bytes_read = 0;
  std::int64_t n_multiplied = 0;  // elements of the matrices that a forward multiplies by

  /// The output matrix, [n_outputs, dim].
  const kernels::PackedMatrix& head() const {
    return lm_head.view.data ? lm_head.view : embedding.view;
  }
};

/// The types in which weights are computed.
struct WeightTypes {
  kernels::DType dtype = kernels::DType::BF16;
  /// True: quantised matrices stay quantised, and others keep their own type; the device has pack_quantised.
  bool as_stored = false;
};

/// Packs a tensor of two dimensions.
/// @param dtype  Q8_0 and Q4_0: rounded to it; CPU only, rows are multiples of 32 elements
Matrix pack_matrix(kernels::Device& device, const Tensor& tensor, kernels::DType dtype);
/// Loads the weights of one layer.
/// @param config  its shape
/// @param at      prefix of the names of its tensors: "model.layers.3."
LayerWeights load_layer(kernels::Device& device,
                        const ModelConfig& config,
                        const TensorSource& tensors,
                        const std::string& at,
                        kernels::DType dtype);

/// Reads and packs all weights. At most one combined matrix of a layer is in host memory at a time.
/// @param progress  receives the bytes packed so far and the total, counted in types.dtype; false
///                  cancels
/// @throws Error(Cancelled)  if progress returned false
/// @throws Error(BadInput)   if a tensor is missing or has another shape, or a file became shorter
Weights load_weights(kernels::Device& device,
                     const ModelConfig& config,
                     const TensorSource& tensors,
                     const WeightTypes& types,
                     const std::function<bool(std::int64_t, std::int64_t)>& progress);

}  // namespace engine

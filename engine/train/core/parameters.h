// The layout of all weights of a LLaMA-family model in one f32 array. Matrices that one product
// reads together are adjacent: q, k and v form one matrix, gate and up another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// Offsets of one layer's weights in the array.
struct LayerAt {
  std::int64_t attn_norm;  // [dim]
  std::int64_t qkv;        // [(n_heads + 2 n_kv_heads) head_dim, dim]
  std::int64_t attn_out;   // [dim, n_heads head_dim]
  std::int64_t mlp_norm;   // [dim]
  std::int64_t gate_up;    // [2 hidden_dim, dim]
  std::int64_t down;       // [dim, hidden_dim]
};

/// Offsets of all weights in the array.
struct ParameterLayout {
  // [vocab_size, dim], also the head (tied); -1: the model shares that of its target
  std::int64_t embedding = -1;
  std::vector<LayerAt> layers;
  std::int64_t final_norm = 0;
  std::int64_t n = 0;

  /// @throws Error(BadInput)  for shapes the trainer cannot train (untied, biased, odd widths)
  explicit ParameterLayout(const ModelConfig& config);
};

/// A tensor in the array, by its Hugging Face name.
struct NamedPart {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t at;
};
/// The tensors of a model in the array, in the order of their offsets.
/// @param layer_names  the number in each layer's names; empty: its own
std::vector<NamedPart> parts_of(const ParameterLayout& layout,
                                const ModelConfig& config,
                                std::span<const int> layer_names = {});
/// Elements that a part of `size` elements occupies: parts are aligned to 16.
inline std::int64_t aligned_size(std::int64_t size) {
  return (size + 15) / 16 * 16;
}

/// A range of weights with or without weight decay. Matrices decay; norms and biases do not.
struct ParameterRun {
  std::int64_t begin, end;
  bool decays;
};
/// The ranges of a model's weights, in order.
std::vector<ParameterRun> runs_of(const ParameterLayout& layout, const ModelConfig& config);
/// The ranges of an array of parts.
/// @param parts  in the order of their offsets
/// @param n      elements of the array
std::vector<ParameterRun> runs_of(const std::vector<NamedPart>& parts, std::int64_t n);

/// A sample of N(0, 1), a function of (seed, index).
float initial_weight(std::uint64_t seed, std::int64_t index);

/// Sets the initial weights, a function of (seed, index). Matrices are drawn from N(0, deviation)
/// and divided by sqrt(2 n_layers) if their output is added to the residual stream; norms are 1.
void initialise(std::vector<float>& parameters,
                const ParameterLayout& layout,
                const ModelConfig& config,
                float deviation,
                std::uint64_t seed);

/// The array as tensors with Hugging Face's names. Borrows `parameters`, which must outlive the source.
std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               const ModelConfig& config);
/// The same for an array with this list of parts.
std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               std::vector<NamedPart> parts);
/// Copies a model's weights of any dtype into the array.
/// @param from_layers  the source's layer for each layer of the array; empty: the same
/// @throws Error(BadInput)  if a tensor is missing or has another shape
void load_tensors(const TensorSource& source,
                  const ModelConfig& config,
                  std::vector<float>& parameters,
                  std::span<const int> from_layers = {});

}  // namespace engine

// All weights of a LLaMA-family model in one f32 array, and where each lies. Layers that are
// multiplied together lie together: q, k and v are one matrix, gate and up another.
#pragma once

#include <cstdint>
#include <memory>
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

struct ParameterLayout {
  std::int64_t embedding = 0;  // [vocab_size, dim], also the head (tied)
  std::vector<LayerAt> layers;
  std::int64_t final_norm = 0;
  std::int64_t n = 0;

  /// @throws Error(BadInput)  for shapes the trainer cannot train (untied, biased, odd widths)
  explicit ParameterLayout(const ModelConfig& config);
};

/// A tensor in such an array.
struct NamedPart {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t at;
};
/// Where the next part begins behind one of `size` elements: parts are aligned.
inline std::int64_t aligned_size(std::int64_t size) {
  return (size + 15) / 16 * 16;
}

/// Where weight decay applies: begin and end of runs of matrix weights (norms and biases are left
/// out).
struct ParameterRun {
  std::int64_t begin, end;
  bool decays;
};
std::vector<ParameterRun> runs_of(const ParameterLayout& layout, const ModelConfig& config);
/// @param parts  in the order in which they lie
/// @param n      elements of the array
std::vector<ParameterRun> runs_of(const std::vector<NamedPart>& parts, std::int64_t n);

/// A draw from N(0, 1), a function of (seed, index) alone.
float initial_weight(std::uint64_t seed, std::int64_t index);

/// Matrices from N(0, deviation), those that write to the residual stream divided by
/// sqrt(2 n_layers); norms 1. A function of (seed, index) only.
void initialise(std::vector<float>& parameters,
                const ParameterLayout& layout,
                const ModelConfig& config,
                float deviation,
                std::uint64_t seed);

/// The array under Hugging Face's names. Borrows `parameters`, which must outlive the source.
std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               const ModelConfig& config);
std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               std::vector<NamedPart> parts);
/// The inverse: weights of any dtype into the array.
void load_tensors(const TensorSource& source,
                  const ModelConfig& config,
                  std::vector<float>& parameters);

}  // namespace engine

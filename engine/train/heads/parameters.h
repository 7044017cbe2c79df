// The layout of all weights of draft heads in one f32 array, and their initial values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/heads_files.h"
#include "engine/train/core/block.h"
#include "engine/train/core/parameters.h"

namespace engine {

/// The offset of every tensor in the array.
struct HeadsLayout {
  std::vector<NamedPart> parts;  // the tensors of tensors_of(config), in the same order
  std::int64_t n = 0;            // elements of the array
  LayerAt encoder{};             // Chimera: the weights of its block

  /// @throws Error(BadInput)  for shapes the trainer cannot train
  explicit HeadsLayout(const HeadsConfig& config);
  /// Index of a tensor's first element. @throws ContractError  if the heads have no such tensor
  std::int64_t at(const std::string& name) const;
};

/// The number of rows of the output matrix whose tokens are below n_valid; they precede the others.
int valid_outputs(const HeadsConfig& config, int n_valid);

/// The initial weights. Medusa: residual layers are zero, so they return their input, and each head
/// has a copy of the target's output matrix. Chimera: each head has two copies of that matrix, for
/// the hidden state and for f; all other weights are random. Heads that end in the target's output
/// matrix start as the same functions: Chimera's second matrices are zero.
/// @param output     [vocab_size, dim] the target's output matrix, f32; read for heads with their
///                   own
/// @param embedding  [vocab_size, dim] the target's embedding; read for heads with their own
std::vector<float> initial_heads(const HeadsConfig& config,
                                 const std::vector<float>& output,
                                 const std::vector<float>& embedding,
                                 float deviation,
                                 std::uint64_t seed);

/// The matrices of draft heads.
struct HeadsMatrices {
  /// @param layout  the layout of the same heads
  HeadsMatrices(const HeadsConfig& config, const HeadsLayout& layout);
  /// All matrices in one list, without the target's.
  std::vector<kernels::TrainMatrix> all() const;
  /// The output matrix of a head, in output_weights().
  const kernels::TrainMatrix& output_of(int head) const {
    return output.empty() ? of_target : output[static_cast<std::size_t>(head)];
  }
  /// The weights that hold the heads' output matrices.
  const kernels::TrainWeights& output_weights(const kernels::TrainWeights& own,
                                              const kernels::TrainWeights& target) const {
    return output.empty() ? target : own;
  }

  std::vector<std::vector<kernels::TrainMatrix>> residual;  // Medusa: [head][layer]
  std::vector<kernels::TrainMatrix> output;                 // [head]; empty: the target's
  kernels::TrainMatrix of_target;                           // alone in an array
  std::vector<kernels::TrainMatrix> first, second;          // [head] Chimera, before of_target
  kernels::TrainMatrix gram_in, gram_out;                   // Chimera; of size 0 without k-grams
  std::vector<BlockMatrices> encoder;                       // Chimera: one
};

}  // namespace engine

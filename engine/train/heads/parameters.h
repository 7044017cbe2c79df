// All weights of draft heads in one f32 array, where each lies, what they begin with, and their
// matrices as the products read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/heads_files.h"
#include "engine/train/core/block.h"
#include "engine/train/ops/linear.h"
#include "engine/train/core/parameters.h"

namespace engine {

struct HeadsLayout {
  std::vector<NamedPart> parts;  // those of tensors_of(config), in its order
  std::int64_t n = 0;
  LayerAt encoder{};  // Chimera: where its block's weights begin

  /// @throws Error(BadInput)  for shapes the trainer cannot train
  explicit HeadsLayout(const HeadsConfig& config);
  /// Where a tensor begins.
  std::int64_t at(const std::string& name) const;
};

/// Medusa: residual layers that change nothing yet, output matrices the target's own. Chimera: the
/// target's output matrix for either half of what a head reads, everything else drawn.
/// @param output     [vocab_size, dim] the target's output matrix, f32
/// @param embedding  [vocab_size, dim] its embedding
std::vector<float> initial_heads(const HeadsConfig& config,
                                 const std::vector<float>& output,
                                 const std::vector<float>& embedding,
                                 float deviation,
                                 std::uint64_t seed);

template <typename T>
class PackedHeads {
 public:
  /// @param parameters  stay where they are
  PackedHeads(const HeadsConfig& config,
              const HeadsLayout& layout,
              const std::vector<float>& parameters,
              const LinearMath<T>& math);
  /// Reads the masters of matrix i of n_matrices again; threads may share the work.
  void repack(int i, const LinearMath<T>& math) { math.repack(*all_[static_cast<std::size_t>(i)]); }
  int n_matrices() const { return static_cast<int>(all_.size()); }

  std::vector<std::vector<std::unique_ptr<PackedLinear<T>>>> residual;  // Medusa: [head][layer]
  std::vector<std::unique_ptr<PackedLinear<T>>> output;                 // [head]
  std::unique_ptr<PackedLinear<T>> gram_in, gram_out;                   // Chimera
  PackedBlock<T> encoder;

 private:
  std::vector<PackedLinear<T>*> all_;
};

}  // namespace engine

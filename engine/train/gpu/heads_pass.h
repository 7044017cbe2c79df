// Forward and backward of draft heads on a CUDA device: HeadsPass of heads_pass.h with everything
// but tokens and places in the device's memory. Hidden states go up as they are kept, in bf16.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/train/gpu/arrays.h"
#include "engine/train/gpu/state.h"
#include "engine/train/heads/pass.h"

namespace engine {

// What memory of theirs is for (Ops::allocate).
inline constexpr const char* kRowsOfHeads = "the rows of draft heads";
inline constexpr const char* kStatesOfTarget = "the target's hidden states";

/// Where the losses of a step's rows go: arrays [n_heads, n_rows] on the device, zero until they
/// are written.
struct GpuHeadsLosses {
  float* loss = nullptr;     // -log p
  float* squares = nullptr;  // Chimera: each row's sum of squares of f - h
  std::int64_t n_rows = 0;   // of a head in the step: its texts' n_places(0)
  std::int64_t first = 0;    // of a pass among them

  float* loss_of(int head) const { return loss + head * n_rows + first; }
  float* squares_of(int head) const { return squares + head * n_rows + first; }
};

class GpuHeadsPass {
 public:
  virtual ~GpuHeadsPass() = default;
  /// Forward and backward of the texts; at most as many rows in all as there is room for. Waits
  /// only for guesses that chains are fed with.
  /// @param gradient  of all weights, on the device, added to
  virtual void forward_backward(const GpuWeights& weights,
                                std::span<const HeadsText> texts,
                                const HeadsLoss& loss,
                                float* gradient,
                                const GpuHeadsLosses& losses) = 0;
  /// Forward alone, along the texts' own tokens. Waits once.
  /// @param n_valid  tokens that may be proposed: the first so many
  virtual void rank(const GpuWeights& weights,
                    std::span<const HeadsText> texts,
                    int n_valid,
                    HeadsRanks& ranks) = 0;
};

/// Takes all its memory.
/// @param arrays     of as many rows as a pass may have; their device outlives the pass
/// @param embedding  [vocab_size, dim] the target's, read where the heads have none of their own
std::unique_ptr<GpuHeadsPass> make_gpu_heads_pass(const GpuArrays& arrays,
                                                  const HeadsConfig& config,
                                                  const std::vector<float>& embedding);
std::unique_ptr<GpuHeadsPass> make_gpu_medusa_pass(const GpuArrays& arrays,
                                                   const HeadsConfig& config);
std::unique_ptr<GpuHeadsPass> make_gpu_chimera_pass(const GpuArrays& arrays,
                                                    const HeadsConfig& config,
                                                    const std::vector<float>& embedding);

}  // namespace engine

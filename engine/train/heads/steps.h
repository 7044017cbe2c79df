// What computes the steps of training heads: the CPU's shards or a GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/train/heads/pass.h"
#include "engine/train/ops/linear.h"
#include "engine/train/core/training_steps.h"
#include "engine/train/core/workers.h"
#include "kernels/device.h"

namespace engine {

/// What steps of one run have alike.
struct HeadsRunShape {
  const HeadsConfig& config;
  const std::vector<float>& embedding;  // [vocab_size, dim] the target's
  int longest_rows = 0;                 // rows_of() of the longest text there is
  int batch_texts = 0;                  // of a step, at most
  int longest_places = 0;               // n_places(0) of such a text
};

class HeadsSteps {
 public:
  virtual ~HeadsSteps() = default;
  /// What it computes with, for a person.
  virtual std::string name() const = 0;
  /// One update by the texts.
  /// @param step  from 1
  /// @param sums  of the step's rows, added to
  /// @return  the gradient's norm before clipping. Where that or a loss is no finite number it is
  ///          NaN, and no weight and no moment changed
  virtual double update(std::span<const HeadsText> texts,
                        const HeadsLoss& loss,
                        std::int64_t step,
                        double lr,
                        HeadsSums& sums) = 0;
  /// How the weights as they stand rank the tokens that the texts ask for.
  /// @param n_valid  tokens that may be proposed: the first so many
  virtual void rank(std::span<const HeadsText> texts, int n_valid, HeadsRanks& ranks) = 0;
  /// What the device did otherwise than asked since this was last called, a line each.
  virtual std::vector<std::string> take_notes() { return {}; }
  /// Brings weights and moments, as they stand, to the host's memory.
  virtual void fetch() = 0;
};

/// Begins from the state, and works in it. All that is given outlives the steps.
/// @param shards  parts of a step's texts that are summed apart
std::unique_ptr<HeadsSteps> cpu_heads_steps(
    const HeadsRunShape& shape, Compute compute, int shards, TrainState state, Workers& workers);
/// Begins from the state, which it writes again when asked to.
/// @param device   a CUDA device, for these steps alone
/// @param compute  F32Cuda or Bf16Cuda
/// @throws Error(Device or Resources)  if it has no cuBLAS, or too little memory
std::unique_ptr<HeadsSteps> gpu_heads_steps(const HeadsRunShape& shape,
                                            Compute compute,
                                            TrainState state,
                                            std::unique_ptr<kernels::Device> device);

}  // namespace engine

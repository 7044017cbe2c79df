// What one step of consistency training learns from, and whatever computes it: the CPU's shards or
// a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/cllm/consistency.h"
#include "engine/train/ops/linear.h"
#include "engine/train/core/training_steps.h"
#include "engine/train/core/transformer.h"
#include "engine/train/core/workers.h"
#include "kernels/device.h"

namespace engine {

/// A number of each part of the loss.
using PartSums = std::array<double, kLossParts>;

/// Segments laid one behind the other, as a pass takes them.
struct PassRows {
  std::vector<TokenId> token, target;
  std::vector<float> weight;
  std::vector<std::int32_t> pos;
  std::vector<Segment> segments;
  std::vector<RowView> views;
  std::vector<RowGoal> goals;
  std::vector<LossPart> part;

  int n_rows() const { return static_cast<int>(token.size()); }
  void add(const GuidedRows& rows);
  /// Rows that count nothing, up to a multiple of `rows`.
  void pad(int rows);
  /// Weights become shares of the whole loss.
  void scale(const std::array<float, kLossParts>& row_scale);
  /// The rows borrow from this.
  TrainRows rows() const { return {token, target, weight, pos, segments, views, goals, {}}; }
};

/// Those of segments first, first + stride, .. that are `wanted`, in order, in passes of at most
/// `most` rows.
/// @param send  takes a pass, which it may change, and the numbers of its segments
void in_passes(const std::vector<GuidedRows>& segments,
               int first,
               int stride,
               int most,
               bool (*wanted)(const GuidedRows&),
               const std::function<void(PassRows&, const std::vector<std::size_t>&)>& send);
bool has_rows(const GuidedRows& rows);
/// refine_chains() of these segments.
/// @param picks  what each row of the pass that holds them predicts
void refine_segments(std::vector<GuidedRows>& segments,
                     const std::vector<std::size_t>& in_pass,
                     std::span<const TokenId> picks,
                     const ConsistencyLoss& loss);

struct GuidedBatch {
  std::vector<GuidedRows> segments;
  /// What a row counts in the loss: its weight times its part's number here.
  std::array<float, kLossParts> row_scale{};
};

class CllmSteps {
 public:
  virtual ~CllmSteps() = default;
  /// What it computes with, for a person.
  virtual std::string name() const = 0;
  /// Jacobi iterations of the chains that are to be refined, by the weights as they stand.
  virtual void refine(std::vector<GuidedRows>& segments) = 0;
  /// One update by the batch.
  /// @param step    from 1
  /// @param losses  of each part: the sum of its rows' losses, each times its weight in the part
  /// @return  the gradient's norm before clipping. Where that or a loss is no finite number it is
  ///          NaN, and no weight and no moment changed
  virtual double update(const GuidedBatch& batch,
                        std::int64_t step,
                        double lr,
                        PartSums& losses) = 0;
  /// What the device did otherwise than asked since this was last called, a line each.
  virtual std::vector<std::string> take_notes() { return {}; }
  /// Brings weights and moments, as they stand, to the host's memory.
  virtual void fetch() = 0;
};

/// What both begin with. All but the moments and weights of `state` stay as they are.
struct CllmStart {
  const CllmRecipe& recipe;
  const ModelConfig& model;
  const std::vector<float>& target;  // its weights: a frozen teacher's
  Compute compute;
  TrainState state;
};
/// Begin from the state, and work in it; what they are given outlives them.
/// @param shards  parts of a batch that are summed apart
std::unique_ptr<CllmSteps> cpu_cllm_steps(const CllmStart& start, int shards, Workers& workers);
/// Begin from the state, which they write again when asked to.
/// @param device  a CUDA device, which outlives the steps; start.compute is F32Cuda or Bf16Cuda
/// @throws Error(Device or Resources)  if it has no cuBLAS, or too little memory
std::unique_ptr<CllmSteps> gpu_cllm_steps(const CllmStart& start, kernels::Device& device);

}  // namespace engine

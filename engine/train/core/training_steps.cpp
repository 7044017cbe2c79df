#include "engine/train/core/training_steps.h"

#include <algorithm>
#include <cstddef>

#include "engine/train/draft/shared_embedding.h"

namespace engine {
namespace {

// The approximate number of rows of a pass. It is a constant, not derived from the free memory,
// because the order of sums, and so the bits of a gradient, depend on it.
constexpr int kCpuPassRows = 512, kDevicePassRows = 8192;

TrainedArrays arrays_of(const TrainRecipe& recipe, TrainState state) {
  const ParameterLayout layout(recipe.model);
  return {.state = state,
          .runs = runs_of(layout, recipe.model),
          .matrices = matrices_of(recipe.model, layout),
          .n_losses = recipe.batch_tokens / recipe.context * std::int64_t{recipe.context}};
}

}  // namespace

StepBatch lay_out(const std::vector<PackedRow>& rows, int context) {
  StepBatch batch;
  for (const PackedRow& row : rows) {
    batch.token.insert(batch.token.end(), row.token.begin(), row.token.end());
    batch.target.insert(batch.target.end(), row.target.begin(), row.target.end());
    batch.weight.insert(batch.weight.end(), row.weight.begin(), row.weight.end());
    batch.pos.insert(batch.pos.end(), row.pos.begin(), row.pos.end());
    batch.n_tokens += row.n_used;
  }
  batch.segments = segments_of(rows, context);
  std::size_t at = 0;
  for (const PackedRow& row : rows) {
    batch.first_segment.push_back(at);
    at += row.length.size();
  }
  batch.first_segment.push_back(at);
  for (const float w : batch.weight) batch.weight_sum += w;
  return batch;
}

TrainRows BatchPart::take(const StepBatch& batch, int context, int first, int last) {
  const auto at = static_cast<std::size_t>(first) * context;
  const auto n = static_cast<std::size_t>(last - first) * context;
  weight_.assign(batch.weight.begin() + static_cast<std::ptrdiff_t>(at),
                 batch.weight.begin() + static_cast<std::ptrdiff_t>(at + n));
  // A batch without weights has no loss and no gradient.
  for (float& w : weight_)
    w = batch.weight_sum > 0 ? static_cast<float>(w / batch.weight_sum) : 0.0f;
  segments_.clear();
  for (std::size_t i = batch.first_segment[static_cast<std::size_t>(first)];
       i < batch.first_segment[static_cast<std::size_t>(last)]; i++) {
    const auto shift = static_cast<std::int32_t>(at);
    segments_.push_back({batch.segments[i].begin - shift, batch.segments[i].end - shift});
  }
  return {std::span(batch.token).subspan(at, n),
          std::span(batch.target).subspan(at, n),
          weight_,
          std::span(batch.pos).subspan(at, n),
          segments_,
          {}};
}

TrainSteps::TrainSteps(const TrainRecipe& recipe,
                       const TrainPlace& place,
                       TrainState state,
                       const SharedEmbedding* shared)
    : context_(recipe.context),
      n_rows_(recipe.batch_tokens / recipe.context),
      weights_(trainable_weights(place, arrays_of(recipe, state))),
      parts_(static_cast<std::size_t>(weights_->n_shards())) {
  const int pass_rows = weights_->on_cpu() ? kCpuPassRows : kDevicePassRows;
  rows_a_pass_ = std::clamp(pass_rows / context_, 1, n_rows_);
  PassOptions options;
  if (shared) options.frozen = frozen_embedding(*shared, recipe.model, *weights_);
  for (int shard = 0; shard < weights_->n_shards(); shard++)
    passes_.emplace_back(weights_->device(shard), recipe.model, ParameterLayout(recipe.model),
                         rows_a_pass_ * context_, options);
}

// Each shard computes a range of the packed rows, in one or several passes.
double TrainSteps::update(const StepBatch& batch,
                          std::int64_t step,
                          double lr,
                          std::vector<float>& loss) {
  float* losses = weights_->losses(std::ssize(loss));
  weights_->for_shards([&](int shard) {
    const int n_shards = weights_->n_shards();
    const auto own = static_cast<std::size_t>(shard);
    const int end = n_rows_ * (shard + 1) / n_shards;
    for (int row = n_rows_ * shard / n_shards; row < end; row += rows_a_pass_)
      passes_[own].forward_backward(
          weights_->weights(),
          parts_[own].take(batch, context_, row, std::min(row + rows_a_pass_, end)),
          weights_->gradient(shard), losses + std::int64_t{row} * context_);
  });
  return weights_->update(step, lr, loss);
}

}  // namespace engine

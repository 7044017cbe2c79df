#include "engine/train/core/training_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/train/run/run_parts.h"

namespace engine {
namespace {

constexpr int kPassRows = 512;  // rows a shard carries through the layers at once, about

// Steps with activations of type T.
template <typename T>
class CpuSteps : public TrainSteps {
 public:
  CpuSteps(
      const TrainRecipe& recipe, Compute compute, int shards, TrainState state, Workers& workers)
      : context_(recipe.context),
        n_rows_(recipe.batch_tokens / recipe.context),
        rows_a_pass_(std::max(1, kPassRows / recipe.context)),
        compute_(compute),
        layout_(recipe.model),
        state_(state),
        workers_(workers),
        math_(math_for<T>(compute)),
        weights_(recipe.model, layout_, state.parameters, *math_),
        parts_(static_cast<std::size_t>(shards)) {
    for (int i = 0; i < shards; i++) {
      passes_.push_back(std::make_unique<TrainPass<T>>(recipe.model, layout_, math_for<T>(compute),
                                                       train_table(), rows_a_pass_ * context_));
      gradients_.emplace_back(static_cast<std::size_t>(layout_.n), 0.0f);
    }
  }

  std::string name() const override {
    return std::string(name_of(compute_)) + " with " + std::to_string(passes_.size()) +
           " shards, elementwise " + train_table().name;
  }

  bool uses_workers() const override { return true; }

  double update(const StepBatch& batch,
                std::int64_t step,
                double lr,
                std::vector<float>& loss) override {
    workers_.run(static_cast<int>(passes_.size()),
                 [&](int shard) { shard_gradient(shard, batch, loss); });
    if (!all_finite(loss)) return state_.optimizer.leave_out(gradients_, workers_);
    const double norm = state_.optimizer.update(state_.parameters, gradients_, step, lr, workers_);
    workers_.run(weights_.n_matrices(), [&](int i) { weights_.repack(i, *math_); });
    return norm;
  }

  void fetch() override {}

 private:
  void shard_gradient(int shard, const StepBatch& batch, std::vector<float>& loss);

  int context_, n_rows_, rows_a_pass_;
  Compute compute_;
  ParameterLayout layout_;
  TrainState state_;
  Workers& workers_;
  std::unique_ptr<LinearMath<T>> math_;
  PackedWeights<T> weights_;
  std::vector<BatchPart> parts_;  // of each shard
  std::vector<std::unique_ptr<TrainPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
};

// Rows of the batch are dealt to shards in runs; a shard's rows go through in passes, and its
// gradient is their sum in that order.
template <typename T>
void CpuSteps<T>::shard_gradient(int shard, const StepBatch& batch, std::vector<float>& loss) {
  const int n_shards = static_cast<int>(passes_.size());
  const int begin = n_rows_ * shard / n_shards, end = n_rows_ * (shard + 1) / n_shards;
  const auto own = static_cast<std::size_t>(shard);
  for (int row = begin; row < end; row += rows_a_pass_) {
    const TrainRows rows =
        parts_[own].take(batch, context_, row, std::min(row + rows_a_pass_, end));
    const auto at = static_cast<std::size_t>(row) * context_;
    passes_[own]->forward_backward(state_.parameters, weights_, rows, gradients_[own].data(),
                                   std::span(loss).subspan(at, rows.token.size()));
  }
}

}  // namespace

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

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
  // Where no row counts there is no loss, and no gradient.
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

std::unique_ptr<TrainSteps> cpu_steps(
    const TrainRecipe& recipe, Compute compute, int shards, TrainState state, Workers& workers) {
  if (compute == Compute::F32)
    return std::make_unique<CpuSteps<float>>(recipe, compute, shards, state, workers);
  return std::make_unique<CpuSteps<Bf16>>(recipe, compute, shards, state, workers);
}

}  // namespace engine

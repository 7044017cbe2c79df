#include "engine/train/heads/steps.h"

#include <algorithm>
#include <cmath>

#include "engine/train/run/run_parts.h"

namespace engine {
namespace {

constexpr int kPassRows = 1024;  // of a pass, or those of the longest text

// Steps with activations of type T.
template <typename T>
class CpuHeadsSteps final : public HeadsSteps {
 public:
  CpuHeadsSteps(
      const HeadsRunShape& shape, Compute compute, int shards, TrainState state, Workers& workers)
      : config_(shape.config),
        compute_(compute),
        pass_rows_(std::max(kPassRows, shape.longest_rows)),
        state_(state),
        workers_(workers),
        math_(math_for<T>(compute)),
        weights_(config_, HeadsLayout(config_), state.parameters, *math_) {
    for (int i = 0; i < shards; i++) {
      passes_.push_back(make_heads_pass<T>(config_, shape.embedding, math_for<T>(compute),
                                           train_table(), pass_rows_));
      gradients_.emplace_back(state.parameters.size(), 0.0f);
    }
  }

  std::string name() const override {
    return std::string(name_of(compute_)) + " with " + std::to_string(passes_.size()) +
           " shards, elementwise " + train_table().name;
  }

  double update(std::span<const HeadsText> texts,
                const HeadsLoss& loss,
                std::int64_t step,
                double lr,
                HeadsSums& sums) override {
    sums += gradient_of(texts, loss);
    if (!sums.finite()) return state_.optimizer.leave_out(gradients_, workers_);
    const double norm = state_.optimizer.update(state_.parameters, gradients_, step, lr, workers_);
    if (std::isfinite(norm))
      workers_.run(weights_.n_matrices(), [&](int i) { weights_.repack(i, *math_); });
    return norm;
  }

  void rank(std::span<const HeadsText> texts, int n_valid, HeadsRanks& ranks) override {
    for (const auto pass : passes_of(texts, config_, pass_rows_))
      passes_[0]->rank(state_.parameters, weights_, pass, n_valid, ranks);
  }

  void fetch() override {}

 private:
  // Texts are dealt to shards in runs; a shard's gradient is the sum of its passes in their order.
  HeadsSums gradient_of(std::span<const HeadsText> texts, const HeadsLoss& loss) {
    const auto n_shards = passes_.size();
    std::vector<HeadsSums> sums(n_shards, HeadsSums(config_.n_heads));
    workers_.run(static_cast<int>(n_shards), [&](int i) {
      const auto shard = static_cast<std::size_t>(i);
      const std::size_t begin = texts.size() * shard / n_shards;
      const std::size_t end = texts.size() * (shard + 1) / n_shards;
      for (const auto pass : passes_of(texts.subspan(begin, end - begin), config_, pass_rows_))
        passes_[shard]->forward_backward(state_.parameters, weights_, pass, loss,
                                         gradients_[shard].data(), sums[shard]);
    });
    HeadsSums all(config_.n_heads);
    for (const HeadsSums& shard : sums) all += shard;
    return all;
  }

  const HeadsConfig& config_;
  Compute compute_;
  int pass_rows_;
  TrainState state_;
  Workers& workers_;
  std::unique_ptr<LinearMath<T>> math_;
  PackedHeads<T> weights_;
  std::vector<std::unique_ptr<HeadsPass<T>>> passes_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace

std::unique_ptr<HeadsSteps> cpu_heads_steps(
    const HeadsRunShape& shape, Compute compute, int shards, TrainState state, Workers& workers) {
  if (compute == Compute::F32)
    return std::make_unique<CpuHeadsSteps<float>>(shape, compute, shards, state, workers);
  return std::make_unique<CpuHeadsSteps<Bf16>>(shape, compute, shards, state, workers);
}

}  // namespace engine

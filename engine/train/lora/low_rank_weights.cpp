#include "engine/train/lora/low_rank_weights.h"

#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "engine/train/ops/cpu_device.h"

namespace engine {
namespace {

using kernels::DType;
using kernels::TrainMatrix;

TrainPlace in_f32(TrainPlace place) {
  place.compute = place.device ? Compute::F32Cuda : Compute::F32;
  return place;
}

class LowRankWeights final : public TrainableWeights {
 public:
  LowRankWeights(const TrainPlace& place,
                 const LowRankLayout& layout,
                 const LowRankBase& base,
                 TrainState state,
                 std::int64_t n_losses)
      : layout_(layout),
        sums_(base.weights),
        unused_({}, std::vector<ParameterRun>(1), train_table()),
        model_(trainable_weights(place,
                                 {.state = {sums_, unused_},
                                  .runs = {{0, std::ssize(sums_), false}},
                                  .matrices = base.matrices,
                                  .n_losses = 0})),
        updates_(trainable_weights(
            in_f32(place),
            {.state = state, .runs = layout_.runs(), .matrices = {}, .n_losses = n_losses})),
        base_(updates_->constant(base.weights, "the fixed weights")) {
    gradient_ = {model_->gradient(0), model_->gradient(0)};
    if (model_->on_cpu()) {
      std::vector<TrainMatrix> updated;
      for (const LowRankMatrix& m : layout_.matrices) updated.push_back(m.matrix);
      // The f32 form refers to the gradient without a copy.
      packed_gradient_ = pack_weights(gradient_.masters, updated, Compute::F32);
      gradient_.packed = packed_gradient_.get();
    }
    add_updates();
  }

  std::string name() const override {
    return model_->name() + ", low-rank updates of rank " + std::to_string(layout_.rank);
  }
  bool on_cpu() const override { return model_->on_cpu(); }
  int n_shards() const override { return model_->n_shards(); }
  TrainDevice device(int shard) const override { return model_->device(shard); }
  void for_shards(const std::function<void(int)>& work) override { model_->for_shards(work); }

  kernels::TrainWeights weights() const override { return model_->weights(); }
  float* masters() override { return model_->masters(); }
  void pack() override { model_->pack(); }
  kernels::TrainWeights frozen(const std::vector<float>& parameters,
                               const std::vector<TrainMatrix>& matrices) override {
    return model_->frozen(parameters, matrices);
  }
  const float* constant(const std::vector<float>& values, const char* what) override {
    return model_->constant(values, what);
  }
  float* gradient(int shard) override { return model_->gradient(shard); }
  float* losses(std::int64_t n) override { return updates_->losses(n); }

  double update(std::int64_t step, double lr, std::span<float> loss) override {
    for_matrices([this](const TrainDevice& on, const LowRankMatrix& m) { add_gradient(on, m); });
    for_shards([this](int shard) {
      const TrainDevice on = model_->device(shard);
      on.ops.clear(on.device, gradient(shard), 4 * std::ssize(sums_));
    });
    const double norm = updates_->update(step, lr, loss);
    if (std::isfinite(norm)) add_updates();
    return norm;
  }
  void fetch() override { updates_->fetch(); }
  std::vector<std::string> take_notes() override { return model_->take_notes(); }

 private:
  /// Calls work for every updated matrix; each shard's thread has its own device.
  void for_matrices(const std::function<void(const TrainDevice&, const LowRankMatrix&)>& work) {
    for_shards([&](int shard) {
      for (auto i = static_cast<std::size_t>(shard); i < layout_.matrices.size();
           i += static_cast<std::size_t>(n_shards()))
        work(updates_->device(shard), layout_.matrices[i]);
    });
  }
  const float* update_at(std::int64_t offset) const { return updates_->weights().masters + offset; }

  /// Computes dB^T = A dW^T and dA = B^T dW from the sum of the shards' dW.
  void add_gradient(const TrainDevice& on, const LowRankMatrix& m) {
    const auto& [device, ops, type] = on;
    const std::int64_t size = std::int64_t{m.matrix.n_out} * m.matrix.n_in;
    for (int shard = 1; shard < n_shards(); shard++)
      ops.add(device, type, gradient(shard) + m.matrix.at, gradient(0) + m.matrix.at, size);
    float* const to = updates_->gradient(0);
    ops.forward_f32(device, type, gradient_, m.matrix, update_at(m.a), layout_.rank, to + m.b,
                    false);
    ops.backward_input(device, type, gradient_, m.matrix, update_at(m.b), layout_.rank, to + m.a);
  }

  /// Computes W + B A of every updated matrix.
  void add_updates() {
    for_matrices([this](const TrainDevice& on, const LowRankMatrix& m) {
      const auto& [device, ops, type] = on;
      const auto [at, n_out, n_in] = m.matrix;
      ops.copy_rows(device, DType::F32, base_ + at, nullptr, DType::F32, masters() + at, nullptr,
                    n_in, n_out, n_in);
      ops.backward_weight(device, type, gradient_, m.matrix, update_at(m.b), update_at(m.a),
                          layout_.rank, masters());
    });
    pack();
  }

  const LowRankLayout layout_;
  std::vector<float> sums_;  // W + B A and the weights without an update
  Optimizer unused_;         // of the sums, which no optimizer changes
  std::unique_ptr<TrainableWeights> model_, updates_;
  const float* const base_;
  kernels::TrainWeights gradient_;  // of the first shard, as the weights of products
  std::unique_ptr<PackedWeights> packed_gradient_;
};

}  // namespace

std::unique_ptr<TrainableWeights> low_rank_weights(const TrainPlace& place,
                                                   const LowRankLayout& layout,
                                                   const LowRankBase& base,
                                                   TrainState state,
                                                   std::int64_t n_losses) {
  return std::make_unique<LowRankWeights>(place, layout, base, state, n_losses);
}

}  // namespace engine

// Trainable weights on the CPU. Weights and moments stay in the host's TrainState; every shard has
// its own device, gradient and thread.
#include <algorithm>
#include <cmath>

#include "engine/train/core/trainable_weights.h"
#include "engine/train/ops/cpu_device.h"

namespace engine {
namespace {

class CpuWeights final : public TrainableWeights {
 public:
  CpuWeights(const TrainPlace& place, TrainedArrays arrays)
      : place_(place),
        arrays_(std::move(arrays)),
        packed_(pack_weights(state().parameters.data(), arrays_.matrices, place.compute)) {
    for (int shard = 0; shard < place.shards; shard++) {
      devices_.push_back(open_cpu_shard(place.compute));
      gradients_.emplace_back(state().parameters.size(), 0.0f);
    }
  }

  std::string name() const override {
    return std::string(name_of(place_.compute)) + " with " + std::to_string(n_shards()) +
           " shards, elementwise " + train_table().name;
  }
  bool on_cpu() const override { return true; }
  int n_shards() const override { return place_.shards; }
  TrainDevice device(int shard) const override {
    return {*devices_[static_cast<std::size_t>(shard)], cpu_train_ops(place_.compute),
            place_.compute == Compute::F32 ? kernels::DType::F32 : kernels::DType::BF16};
  }
  void for_shards(const std::function<void(int)>& work) override {
    place_.workers.run(n_shards(), work);
  }

  kernels::TrainWeights weights() const override {
    return {state().parameters.data(), packed_.get()};
  }
  float* masters() override { return state().parameters.data(); }
  void pack() override {
    place_.workers.run(packed_->n_matrices(), [&](int i) { packed_->repack(i); });
  }
  kernels::TrainWeights frozen(const std::vector<float>& parameters,
                               const std::vector<kernels::TrainMatrix>& matrices) override {
    frozen_.push_back(pack_weights(parameters.data(),
                                   matrices.empty() ? arrays_.matrices : matrices, place_.compute));
    return {parameters.data(), frozen_.back().get()};
  }
  const float* constant(const std::vector<float>& values, const char*) override {
    return values.data();
  }

  float* gradient(int shard) override { return gradients_[static_cast<std::size_t>(shard)].data(); }
  float* losses(std::int64_t n) override {
    losses_.resize(static_cast<std::size_t>(n));
    return losses_.data();
  }

  double update(std::int64_t step, double lr, std::span<float> loss) override {
    std::copy_n(losses_.begin(), loss.size(), loss.begin());
    Optimizer& optimizer = state().optimizer;
    if (!all_finite(loss)) return optimizer.skip_step(gradients_, place_.workers);
    const double norm = optimizer.update(state().parameters, gradients_, step, lr, place_.workers);
    if (std::isfinite(norm)) pack();
    return norm;
  }
  void fetch() override {}

 private:
  const TrainState& state() const { return arrays_.state; }

  TrainPlace place_;
  TrainedArrays arrays_;
  std::unique_ptr<PackedWeights> packed_;
  std::vector<std::unique_ptr<PackedWeights>> frozen_;
  std::vector<std::unique_ptr<kernels::Device>> devices_;
  std::vector<std::vector<float>> gradients_;
  std::vector<float> losses_;
};

}  // namespace

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

std::unique_ptr<TrainableWeights> cpu_weights(const TrainPlace& place, TrainedArrays arrays) {
  return std::make_unique<CpuWeights>(place, std::move(arrays));
}

std::unique_ptr<TrainableWeights> trainable_weights(const TrainPlace& place, TrainedArrays arrays) {
  return place.device ? device_weights(place, std::move(arrays))
                      : cpu_weights(place, std::move(arrays));
}

}  // namespace engine

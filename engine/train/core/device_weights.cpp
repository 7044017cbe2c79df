// Trainable weights on a CUDA device. Weights, moments and the gradient stay in the device's
// memory. Each step copies only the losses and the gradient's sums of squares to the host, with one
// wait.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/types.h"
#include "engine/train/core/trainable_weights.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

class DeviceWeights final : public TrainableWeights {
 public:
  DeviceWeights(const TrainPlace& place, TrainedArrays arrays);

  std::string name() const override {
    return std::string(name_of(compute_)) + " on " + device_.name() + ", products by " + products_;
  }
  bool on_cpu() const override { return false; }
  int n_shards() const override { return 1; }
  TrainDevice device(int) const override { return {device_, ops_, type_}; }
  void for_shards(const std::function<void(int)>& work) override { work(0); }

  kernels::TrainWeights weights() const override { return of(parameters_, rounded_); }
  float* masters() override { return parameters_.f32(); }
  void pack() override {
    if (rounded_.data()) ops_.convert(device_, type_, parameters_.f32(), rounded_.data(), n_);
  }
  kernels::TrainWeights frozen(const std::vector<float>& parameters,
                               const std::vector<kernels::TrainMatrix>& matrices) override;
  const float* constant(const std::vector<float>& values, const char* what) override {
    constants_.push_back(uploaded(values, what));
    return constants_.back().f32();
  }

  float* gradient(int) override { return gradient_.f32(); }
  float* losses(std::int64_t n) override {
    ensure(8 * n_sums_ + 4 * n <= results_.bytes(), "a step has more losses than the buffer holds");
    return reinterpret_cast<float*>(static_cast<double*>(results_.data()) + n_sums_);
  }
  double update(std::int64_t step, double lr, std::span<float> loss) override;
  void fetch() override {
    for (const auto& [host, buffer] : arrays())
      device_.ops().download(device_, host->data(), buffer->data(), buffer->bytes());
  }
  std::vector<std::string> take_notes() override { return kernels::take_notes_of(device_); }

 private:
  static kernels::TrainWeights of(const DeviceBuffer& masters, const DeviceBuffer& rounded) {
    return {masters.f32(), rounded.data() ? rounded.data() : masters.data()};
  }
  DeviceBuffer uploaded(const std::vector<float>& values, const char* what) const {
    DeviceBuffer buffer(device_, 4 * std::ssize(values), what);
    device_.ops().upload(device_, buffer.data(), values.data(), buffer.bytes());
    return buffer;
  }
  /// The f32 master weights rounded to the type of activations; an empty buffer if that type is
  /// f32.
  DeviceBuffer rounded(const DeviceBuffer& masters, const char* what) const {
    if (type_ == DType::F32) return {};
    const std::int64_t n = masters.bytes() / 4;
    DeviceBuffer buffer(device_, kernels::bytes_of(type_) * n, what);
    ops_.convert(device_, type_, masters.f32(), buffer.data(), n);
    return buffer;
  }
  std::vector<std::pair<std::vector<float>*, DeviceBuffer*>> arrays() {
    return {{&state_.parameters, &parameters_},
            {&state_.optimizer.mean, &mean_},
            {&state_.optimizer.square, &square_}};
  }
  void adamw(double norm, std::int64_t step, double lr);

  kernels::Device& device_;
  const kernels::TrainKernels& ops_;
  const Compute compute_;
  const DType type_;
  const std::string products_;
  TrainState state_;
  const std::vector<ParameterRun> runs_;
  const std::int64_t n_, n_sums_;
  DeviceBuffer results_;  // the gradient's sums of squares, then the losses
  std::vector<char> arrived_;
  DeviceBuffer adam_;  // the step's AdamW constants for weights without decay, then with decay
  DeviceBuffer parameters_, mean_, square_, gradient_, rounded_;
  std::vector<DeviceBuffer> constants_;
};

DeviceWeights::DeviceWeights(const TrainPlace& place, TrainedArrays arrays_given)
    : device_(*place.device),
      ops_(kernels::train_kernels(device_)),
      compute_(place.compute),
      type_(compute_ == Compute::F32Cuda ? DType::F32 : DType::BF16),
      products_(ops_.products(device_)),
      state_(arrays_given.state),
      runs_(std::move(arrays_given.runs)),
      n_(runs_.back().end),
      n_sums_((n_ + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock),
      results_(device_, 8 * n_sums_ + 4 * arrays_given.n_losses, "the losses of a training step"),
      arrived_(static_cast<std::size_t>(results_.bytes())),
      adam_(device_,
            2 * static_cast<std::int64_t>(sizeof(kernels::AdamStep)),
            "the constants of AdamW") {
  ensure(compute_ == Compute::F32Cuda || compute_ == Compute::Bf16Cuda,
         "a CUDA device must compute in f32-cuda or bf16-cuda");
  ensure(std::ssize(state_.parameters) == n_,
         "the last range of parameters must end at their number");
  parameters_ = uploaded(state_.parameters, "the weights in training");
  mean_ = uploaded(state_.optimizer.mean, "the moments of the weights");
  square_ = uploaded(state_.optimizer.square, "the moments of the weights");
  gradient_ = DeviceBuffer(device_, 4 * n_, "the weights' gradient");
  ops_.clear(device_, gradient_.data(), gradient_.bytes());
  rounded_ = rounded(parameters_, "the weights in bf16");
}

kernels::TrainWeights DeviceWeights::frozen(const std::vector<float>& parameters,
                                            const std::vector<kernels::TrainMatrix>&) {
  constexpr const char* kFrozen = "frozen weights";
  DeviceBuffer masters = uploaded(parameters, kFrozen), narrow = rounded(masters, kFrozen);
  const kernels::TrainWeights weights = of(masters, narrow);
  constants_.push_back(std::move(masters));
  constants_.push_back(std::move(narrow));
  return weights;
}

double DeviceWeights::update(std::int64_t step, double lr, std::span<float> loss) {
  const std::int64_t n_bytes = 8 * n_sums_ + 4 * std::ssize(loss);
  ops_.squares(device_, gradient_.f32(), n_, static_cast<double*>(results_.data()));
  device_.ops().download(device_, arrived_.data(), results_.data(), n_bytes);
  const auto* squares = reinterpret_cast<const double*>(arrived_.data());
  double sum = 0;
  for (std::int64_t i = 0; i < n_sums_; i++) sum += squares[i];
  std::copy_n(reinterpret_cast<const float*>(squares + n_sums_), loss.size(), loss.begin());
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm) || !all_finite(loss)) {
    ops_.clear(device_, gradient_.data(), gradient_.bytes());
    return std::numeric_limits<double>::quiet_NaN();
  }
  adamw(norm, step, lr);
  return norm;
}

void DeviceWeights::adamw(double norm, std::int64_t step, double lr) {
  const kernels::AdamStep both[] = {state_.optimizer.adam_step(norm, step, lr, false),
                                    state_.optimizer.adam_step(norm, step, lr, true)};
  device_.ops().upload(device_, adam_.data(), both, sizeof both);
  for (const ParameterRun& run : runs_) {
    const std::int64_t at = run.begin;
    void* rounded = rounded_.data()
                        ? static_cast<char*>(rounded_.data()) + at * kernels::bytes_of(type_)
                        : nullptr;
    ops_.adamw(device_, parameters_.f32() + at, mean_.f32() + at, square_.f32() + at,
               gradient_.f32() + at, type_, rounded, run.end - at,
               static_cast<const kernels::AdamStep*>(adam_.data()) + run.decays);
  }
}

}  // namespace

std::unique_ptr<TrainableWeights> device_weights(const TrainPlace& place, TrainedArrays arrays) {
  return std::make_unique<DeviceWeights>(place, std::move(arrays));
}

}  // namespace engine

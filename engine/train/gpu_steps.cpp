// Steps on a GPU: weights, moments and gradients live there; tokens go up, losses and the
// gradient's squares come down with one wait a step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/train/gpu_pass.h"
#include "engine/train/training_steps.h"
#include "engine/types.h"
#include "kernels/cuda/cuda.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

// Rows of a pass, about. No measure of the memory there is: the sums' order, and with it the bits,
// would follow it.
constexpr int kGpuPassRows = 8192;

class GpuSteps : public TrainSteps {
 public:
  GpuSteps(const TrainRecipe& recipe,
           Compute compute,
           TrainState state,
           std::unique_ptr<kernels::Device> device)
      : device_(std::move(device)),
        kernels_(kernels::train_kernels(*device_)),
        products_(kernels_.products(*device_)),
        context_(recipe.context),
        n_rows_(recipe.batch_tokens / recipe.context),
        rows_a_pass_(std::clamp(kGpuPassRows / recipe.context, 1, n_rows_)),
        compute_(compute),
        type_(compute == Compute::F32Cuda ? DType::F32 : DType::BF16),
        layout_(recipe.model),
        runs_(runs_of(layout_, recipe.model)),
        state_(state),
        n_sums_((layout_.n + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock),
        results_(*device_, 8 * n_sums_ + 4 * std::int64_t{n_rows_} * context_),
        arrived_(static_cast<std::size_t>(results_.bytes())),
        adam_(*device_, 2 * static_cast<std::int64_t>(sizeof(kernels::AdamStep))),
        pass_(*device_, recipe.model, layout_, type_, rows_a_pass_ * context_) {
    for (DeviceBuffer* one : {&parameters_, &mean_, &square_, &gradient_})
      *one = DeviceBuffer(*device_, 4 * layout_.n);
    for (const auto& [host, there] : arrays())
      device_->ops().upload(*device_, there->data(), host->data(), there->bytes());
    kernels_.clear(*device_, gradient_.data(), gradient_.bytes());
    if (type_ == DType::F32) return;
    rounded_ = DeviceBuffer(*device_, kernels::bytes_of(type_) * layout_.n);
    kernels_.convert(*device_, type_, parameters_.f32(), rounded_.data(), layout_.n);
  }

  std::string name() const override {
    return std::string(name_of(compute_)) + " on " + device_->name() + ", products by " + products_;
  }

  bool uses_workers() const override { return false; }

  double update(const StepBatch& batch,
                std::int64_t step,
                double lr,
                std::vector<float>& loss) override {
    auto* sums = static_cast<double*>(results_.data());
    auto* losses = reinterpret_cast<float*>(sums + n_sums_);
    const GpuWeights weights{parameters_.f32(),
                             rounded_.data() ? rounded_.data() : parameters_.data()};
    for (int row = 0; row < n_rows_; row += rows_a_pass_) {
      const TrainRows rows =
          part_.take(batch, context_, row, std::min(row + rows_a_pass_, n_rows_));
      pass_.forward_backward(weights, rows, gradient_.f32(), losses + std::int64_t{row} * context_);
    }
    kernels_.squares(*device_, gradient_.f32(), layout_.n, sums);
    device_->ops().download(*device_, arrived_.data(), results_.data(), results_.bytes());
    const auto* squares = reinterpret_cast<const double*>(arrived_.data());
    double sum = 0;
    for (std::int64_t i = 0; i < n_sums_; i++) sum += squares[i];
    const auto* found = reinterpret_cast<const float*>(squares + n_sums_);
    std::copy_n(found, loss.size(), loss.begin());
    const double norm = std::sqrt(sum);
    if (!std::isfinite(norm) || !all_finite(loss)) {
      kernels_.clear(*device_, gradient_.data(), gradient_.bytes());
      return std::numeric_limits<double>::quiet_NaN();
    }
    adamw(norm, step, lr);
    return norm;
  }

  std::vector<std::string> take_notes() override { return kernels::take_notes_of(*device_); }

  void fetch() override {
    for (const auto& [host, there] : arrays())
      device_->ops().download(*device_, host->data(), there->data(), there->bytes());
  }

 private:
  std::vector<std::pair<std::vector<float>*, DeviceBuffer*>> arrays() {
    return {{&state_.parameters, &parameters_},
            {&state_.optimizer.mean, &mean_},
            {&state_.optimizer.square, &square_}};
  }

  void adamw(double norm, std::int64_t step, double lr) {
    const kernels::AdamStep both[] = {state_.optimizer.adam_step(norm, step, lr, false),
                                      state_.optimizer.adam_step(norm, step, lr, true)};
    device_->ops().upload(*device_, adam_.data(), both, sizeof both);
    for (const ParameterRun& run : runs_) {
      const std::int64_t at = run.begin;
      void* rounded = rounded_.data()
                          ? static_cast<char*>(rounded_.data()) + at * kernels::bytes_of(type_)
                          : nullptr;
      kernels_.adamw(*device_, parameters_.f32() + at, mean_.f32() + at, square_.f32() + at,
                     gradient_.f32() + at, type_, rounded, run.end - at,
                     static_cast<const kernels::AdamStep*>(adam_.data()) + run.decays);
    }
  }

  std::unique_ptr<kernels::Device> device_;
  const kernels::TrainKernels& kernels_;
  std::string products_;
  int context_, n_rows_, rows_a_pass_;
  Compute compute_;
  DType type_;
  ParameterLayout layout_;
  std::vector<ParameterRun> runs_;
  TrainState state_;
  std::int64_t n_sums_;
  DeviceBuffer results_;  // the gradient's squares in parts, then losses
  std::vector<char> arrived_;
  BatchPart part_;
  DeviceBuffer adam_;  // the step's update of weights that do not decay, and of those that do
  DeviceBuffer parameters_, mean_, square_, gradient_, rounded_;
  GpuTrainPass pass_;
};

}  // namespace

std::unique_ptr<TrainSteps> gpu_steps(const TrainRecipe& recipe,
                                      Compute compute,
                                      TrainState state,
                                      std::unique_ptr<kernels::Device> device) {
  ensure(compute == Compute::F32Cuda || compute == Compute::Bf16Cuda, "a GPU's way to compute");
  return std::make_unique<GpuSteps>(recipe, compute, state, std::move(device));
}

}  // namespace engine

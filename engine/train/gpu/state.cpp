#include "engine/train/gpu/state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/types.h"

namespace engine {

using kernels::DeviceBuffer;
using kernels::DType;

GpuTrainState::GpuTrainState(kernels::Device& device,
                             TrainState state,
                             std::vector<ParameterRun> runs,
                             DType type,
                             std::int64_t n_losses)
    : device_(device),
      kernels_(kernels::train_kernels(device)),
      state_(state),
      runs_(std::move(runs)),
      type_(type),
      n_(runs_.back().end),
      n_sums_((n_ + kernels::kSquaresBlock - 1) / kernels::kSquaresBlock),
      results_(device, 8 * n_sums_ + 4 * n_losses, "the losses of a training's step"),
      arrived_(static_cast<std::size_t>(results_.bytes())),
      adam_(device,
            2 * static_cast<std::int64_t>(sizeof(kernels::AdamStep)),
            "how weights are updated") {
  ensure(std::ssize(state_.parameters) == n_, "a run's weights end where its last run does");
  parameters_ = DeviceBuffer(device, 4 * n_, "the weights that are trained");
  for (DeviceBuffer* one : {&mean_, &square_})
    *one = DeviceBuffer(device, 4 * n_, "the moments of the weights");
  gradient_ = DeviceBuffer(device, 4 * n_, "the weights' gradient");
  for (const auto& [host, there] : arrays())
    device.ops().upload(device, there->data(), host->data(), there->bytes());
  kernels_.clear(device, gradient_.data(), gradient_.bytes());
  if (type_ == DType::F32) return;
  rounded_ = DeviceBuffer(device, kernels::bytes_of(type_) * n_, "the weights in bf16");
  kernels_.convert(device, type_, parameters_.f32(), rounded_.data(), n_);
}

std::vector<std::pair<std::vector<float>*, DeviceBuffer*>> GpuTrainState::arrays() {
  return {{&state_.parameters, &parameters_},
          {&state_.optimizer.mean, &mean_},
          {&state_.optimizer.square, &square_}};
}

GpuWeights GpuTrainState::weights() const {
  return {parameters_.f32(), rounded_.data() ? rounded_.data() : parameters_.data()};
}

float* GpuTrainState::losses() const {
  return reinterpret_cast<float*>(static_cast<double*>(results_.data()) + n_sums_);
}

double GpuTrainState::update(std::int64_t step, double lr, std::span<float> loss) {
  const std::int64_t n_bytes = 8 * n_sums_ + 4 * std::ssize(loss);
  ensure(n_bytes <= results_.bytes(), "a step has no more losses than it was said to have");
  kernels_.squares(device_, gradient_.f32(), n_, static_cast<double*>(results_.data()));
  device_.ops().download(device_, arrived_.data(), results_.data(), n_bytes);
  const auto* squares = reinterpret_cast<const double*>(arrived_.data());
  double sum = 0;
  for (std::int64_t i = 0; i < n_sums_; i++) sum += squares[i];
  std::copy_n(reinterpret_cast<const float*>(squares + n_sums_), loss.size(), loss.begin());
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm) || !all_finite(loss)) {
    kernels_.clear(device_, gradient_.data(), gradient_.bytes());
    return std::numeric_limits<double>::quiet_NaN();
  }
  adamw(norm, step, lr);
  return norm;
}

void GpuTrainState::adamw(double norm, std::int64_t step, double lr) {
  const kernels::AdamStep both[] = {state_.optimizer.adam_step(norm, step, lr, false),
                                    state_.optimizer.adam_step(norm, step, lr, true)};
  device_.ops().upload(device_, adam_.data(), both, sizeof both);
  for (const ParameterRun& run : runs_) {
    const std::int64_t at = run.begin;
    void* rounded = rounded_.data()
                        ? static_cast<char*>(rounded_.data()) + at * kernels::bytes_of(type_)
                        : nullptr;
    kernels_.adamw(device_, parameters_.f32() + at, mean_.f32() + at, square_.f32() + at,
                   gradient_.f32() + at, type_, rounded, run.end - at,
                   static_cast<const kernels::AdamStep*>(adam_.data()) + run.decays);
  }
}

void GpuTrainState::fetch() {
  for (const auto& [host, there] : arrays())
    device_.ops().download(device_, host->data(), there->data(), there->bytes());
}

}  // namespace engine

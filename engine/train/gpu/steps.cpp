// Steps on a GPU: weights, moments and gradients live there; tokens go up, losses and the
// gradient's squares come down with one wait a step.
#include <algorithm>

#include "engine/train/gpu/pass.h"
#include "engine/train/gpu/state.h"
#include "engine/train/core/training_steps.h"
#include "engine/base/types.h"
#include "kernels/cuda/cuda.h"

namespace engine {
namespace {

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
        products_(kernels::train_kernels(*device_).products(*device_)),
        context_(recipe.context),
        n_rows_(recipe.batch_tokens / recipe.context),
        rows_a_pass_(std::clamp(kGpuPassRows / recipe.context, 1, n_rows_)),
        compute_(compute),
        type_(compute == Compute::F32Cuda ? DType::F32 : DType::BF16),
        layout_(recipe.model),
        state_(*device_,
               state,
               runs_of(layout_, recipe.model),
               type_,
               std::int64_t{n_rows_} * context_),
        pass_(*device_, recipe.model, layout_, type_, rows_a_pass_ * context_) {}

  std::string name() const override {
    return std::string(name_of(compute_)) + " on " + device_->name() + ", products by " + products_;
  }

  bool uses_workers() const override { return false; }

  double update(const StepBatch& batch,
                std::int64_t step,
                double lr,
                std::vector<float>& loss) override {
    for (int row = 0; row < n_rows_; row += rows_a_pass_) {
      const TrainRows rows =
          part_.take(batch, context_, row, std::min(row + rows_a_pass_, n_rows_));
      pass_.forward_backward(state_.weights(), rows, state_.gradient(),
                             state_.losses() + std::int64_t{row} * context_);
    }
    return state_.update(step, lr, loss);
  }

  std::vector<std::string> take_notes() override { return kernels::take_notes_of(*device_); }
  void fetch() override { state_.fetch(); }

 private:
  std::unique_ptr<kernels::Device> device_;
  std::string products_;
  int context_, n_rows_, rows_a_pass_;
  Compute compute_;
  DType type_;
  ParameterLayout layout_;
  GpuTrainState state_;
  BatchPart part_;
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

// Steps of draft heads on a GPU: weights, moments and gradients live there; texts and their hidden
// states go up, losses and the gradient's squares come down with one wait a step.
#include <algorithm>

#include "engine/train/gpu/heads_pass.h"
#include "engine/train/gpu/state.h"
#include "engine/train/heads/steps.h"
#include "engine/base/types.h"
#include "kernels/cuda/cuda.h"

namespace engine {
namespace {

// Rows of a pass, or those of the longest text. No measure of the memory there is: the sums' order,
// and with it the bits, would follow it.
constexpr std::int64_t kGpuHeadsRows = 8192;

int rows_of_a_pass(const HeadsRunShape& shape) {
  const std::int64_t of_a_step = std::int64_t{shape.batch_texts} * shape.longest_rows;
  return static_cast<int>(
      std::max<std::int64_t>(std::min(kGpuHeadsRows, of_a_step), shape.longest_rows));
}

std::int64_t places_of(std::span<const HeadsText> texts) {
  std::int64_t n = 0;
  for (const HeadsText& text : texts) n += text.n_places(0);
  return n;
}

class GpuHeadsSteps final : public HeadsSteps {
 public:
  GpuHeadsSteps(const HeadsRunShape& shape,
                Compute compute,
                TrainState state,
                std::unique_ptr<kernels::Device> device)
      : device_(std::move(device)),
        kernels_(kernels::train_kernels(*device_)),
        products_(kernels_.products(*device_)),
        config_(shape.config),
        compute_(compute),
        pass_rows_(rows_of_a_pass(shape)),
        losses_a_row_(config_.n_heads * (config_.kind == HeadsKind::Chimera ? 2 : 1)),
        state_(*device_,
               state,
               runs_of(HeadsLayout(config_).parts, HeadsLayout(config_).n),
               type_of(compute),
               std::int64_t{losses_a_row_} * shape.batch_texts * shape.longest_places),
        pass_(make_gpu_heads_pass(
            {*device_, type_of(compute), pass_rows_}, config_, shape.embedding)) {}

  std::string name() const override {
    return std::string(name_of(compute_)) + " on " + device_->name() + ", products by " + products_;
  }

  double update(std::span<const HeadsText> texts,
                const HeadsLoss& loss,
                std::int64_t step,
                double lr,
                HeadsSums& sums) override {
    const std::int64_t n_rows = places_of(texts);
    losses_.resize(static_cast<std::size_t>(losses_a_row_ * n_rows));
    GpuHeadsLosses there{.loss = state_.losses(),
                         .squares = state_.losses() + config_.n_heads * n_rows,
                         .n_rows = n_rows};
    kernels_.clear(*device_, there.loss, 4 * std::ssize(losses_));
    for (const auto pass : passes_of(texts, config_, pass_rows_)) {
      pass_->forward_backward(state_.weights(), pass, loss, state_.gradient(), there);
      there.first += places_of(pass);
    }
    const double norm = state_.update(step, lr, losses_);
    add_losses(texts, sums);
    return norm;
  }

  void rank(std::span<const HeadsText> texts, int n_valid, HeadsRanks& ranks) override {
    for (const auto pass : passes_of(texts, config_, pass_rows_))
      pass_->rank(state_.weights(), pass, n_valid, ranks);
  }

  std::vector<std::string> take_notes() override { return kernels::take_notes_of(*device_); }
  void fetch() override { state_.fetch(); }

 private:
  static kernels::DType type_of(Compute compute) {
    return compute == Compute::F32Cuda ? kernels::DType::F32 : kernels::DType::BF16;
  }

  // What came down of a step.
  void add_losses(std::span<const HeadsText> texts, HeadsSums& sums) const {
    const std::int64_t n_rows = places_of(texts);
    const float* from = losses_.data();
    for (int head = 0; head < config_.n_heads; head++) {
      const auto k = static_cast<std::size_t>(head);
      for (std::int64_t row = 0; row < n_rows; row++) sums.loss[k] += *from++;
      for (const HeadsText& text : texts) sums.n[k] += text.n_places(head);
    }
    for (; from < losses_.data() + losses_.size(); from++) sums.feature += *from;
    if (config_.kind == HeadsKind::Medusa) return;
    for (const HeadsText& text : texts)
      for (int head = 0; head < config_.n_heads; head++)
        sums.n_feature += std::int64_t{text.n_places(head)} * config_.dim;
  }

  std::unique_ptr<kernels::Device> device_;
  const kernels::TrainKernels& kernels_;
  std::string products_;
  const HeadsConfig config_;
  Compute compute_;
  int pass_rows_, losses_a_row_;
  GpuTrainState state_;
  std::unique_ptr<GpuHeadsPass> pass_;
  std::vector<float> losses_;  // of a step: of each head's rows, then Chimera's squares likewise
};

}  // namespace

std::unique_ptr<GpuHeadsPass> make_gpu_heads_pass(const GpuArrays& arrays,
                                                  const HeadsConfig& config,
                                                  const std::vector<float>& embedding) {
  if (config.kind == HeadsKind::Medusa) return make_gpu_medusa_pass(arrays, config);
  return make_gpu_chimera_pass(arrays, config, embedding);
}

std::unique_ptr<HeadsSteps> gpu_heads_steps(const HeadsRunShape& shape,
                                            Compute compute,
                                            TrainState state,
                                            std::unique_ptr<kernels::Device> device) {
  ensure(compute == Compute::F32Cuda || compute == Compute::Bf16Cuda, "a GPU's way to compute");
  return std::make_unique<GpuHeadsSteps>(shape, compute, state, std::move(device));
}

}  // namespace engine

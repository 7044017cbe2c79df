// Steps of consistency training on a GPU: as of targets (steps.cpp), with a wait more for each
// pass by which chains are refined.
#include <algorithm>

#include "engine/train/cllm/steps.h"
#include "engine/train/gpu/pass.h"
#include "engine/train/gpu/state.h"
#include "engine/base/types.h"
#include "kernels/cuda/cuda.h"

namespace engine {
namespace {

using kernels::DeviceBuffer;
using kernels::DType;

// Rows of a pass, about, and of teachers' logits, all alive together. As of targets no measure of
// the memory there is.
constexpr std::int64_t kCllmPassRows = 8192, kTeacherBytes = 512 << 20;
constexpr const char* kTeacher = "the teacher's weights";

bool has_teachers(const CllmRecipe& recipe) {
  return recipe.consistency_weight > 0 && recipe.loss.by != ConsistencyLoss::By::HardLabels;
}

// Of a step, at most: texts, as many true answers, what is replayed.
std::int64_t most_rows(const CllmRecipe& recipe) {
  return (2 * std::int64_t{recipe.batch_texts} + recipe.replay_texts) * recipe.context;
}

int rows_of_pass(const CllmRecipe& recipe, int vocab_size) {
  std::int64_t rows = std::min(kCllmPassRows, most_rows(recipe));
  if (has_teachers(recipe)) rows = std::min(rows, kTeacherBytes / 4 / vocab_size);
  return static_cast<int>(std::max<std::int64_t>(rows, recipe.context));
}

// Weights that stay as they are.
class FrozenWeights {
 public:
  FrozenWeights(kernels::Device& device, const std::vector<float>& parameters, DType type)
      : masters_(device, 4 * std::ssize(parameters), kTeacher) {
    device.ops().upload(device, masters_.data(), parameters.data(), masters_.bytes());
    if (type == DType::F32) return;
    rounded_ = DeviceBuffer(device, kernels::bytes_of(type) * std::ssize(parameters), kTeacher);
    kernels::train_kernels(device).convert(device, type, masters_.f32(), rounded_.data(),
                                           std::ssize(parameters));
  }
  GpuWeights weights() const {
    return {masters_.f32(), rounded_.data() ? rounded_.data() : masters_.data()};
  }

 private:
  DeviceBuffer masters_, rounded_;
};

class GpuCllmSteps : public CllmSteps {
 public:
  GpuCllmSteps(const CllmStart& start, kernels::Device& device)
      : recipe_(start.recipe),
        device_(device),
        products_(kernels::train_kernels(device).products(device)),
        compute_(start.compute),
        type_(compute_ == Compute::F32Cuda ? DType::F32 : DType::BF16),
        rows_a_pass_(rows_of_pass(recipe_, start.model.vocab_size)),
        layout_(start.model),
        state_(device, start.state, runs_of(layout_, start.model), type_, most_rows(recipe_)),
        pass_(device,
              start.model,
              layout_,
              type_,
              rows_a_pass_,
              GpuVocabRows::kLogitBytes,
              has_teachers(recipe_)) {
    if (recipe_.frozen_teacher && has_teachers(recipe_))
      frozen_ = std::make_unique<FrozenWeights>(device, start.target, type_);
  }

  std::string name() const override {
    return std::string(name_of(compute_)) + " on " + device_.name() + ", products by " + products_;
  }

  void refine(std::vector<GuidedRows>& segments) override {
    const auto send = [&](PassRows& pass, const std::vector<std::size_t>& in_pass) {
      refine_segments(segments, in_pass, pass_.likeliest(state_.weights(), pass.rows()),
                      recipe_.loss);
    };
    for (int iteration = 0; iteration < recipe_.fresh_iterations; iteration++)
      in_passes(segments, 0, 1, rows_a_pass_, has_chains_to_refine, send);
  }

  double update(const GuidedBatch& batch, std::int64_t step, double lr, PartSums& losses) override {
    std::vector<float> counted, loss;  // of each row: its weight in its part, and what it says
    std::vector<LossPart> part;
    const GpuWeights teacher = frozen_ ? frozen_->weights() : GpuWeights{};
    const auto send = [&](PassRows& pass, const auto&) {
      const std::size_t first = counted.size();
      counted.insert(counted.end(), pass.weight.begin(), pass.weight.end());
      part.insert(part.end(), pass.part.begin(), pass.part.end());
      pass.scale(batch.row_scale);
      pass_.forward_backward(state_.weights(), pass.rows(), state_.gradient(),
                             state_.losses() + first, frozen_ ? &teacher : nullptr);
    };
    in_passes(batch.segments, 0, 1, rows_a_pass_, has_rows, send);
    loss.resize(counted.size());
    const double norm = state_.update(step, lr, loss);
    losses = {};
    for (std::size_t i = 0; i < loss.size(); i++)
      losses[static_cast<std::size_t>(part[i])] += static_cast<double>(counted[i]) * loss[i];
    return norm;
  }

  std::vector<std::string> take_notes() override { return kernels::take_notes_of(device_); }
  void fetch() override { state_.fetch(); }

 private:
  const CllmRecipe& recipe_;
  kernels::Device& device_;
  std::string products_;
  Compute compute_;
  DType type_;
  int rows_a_pass_;
  ParameterLayout layout_;
  GpuTrainState state_;
  std::unique_ptr<FrozenWeights> frozen_;
  GpuTrainPass pass_;
};

}  // namespace

std::unique_ptr<CllmSteps> gpu_cllm_steps(const CllmStart& start, kernels::Device& device) {
  ensure(start.compute == Compute::F32Cuda || start.compute == Compute::Bf16Cuda,
         "a GPU's way to compute");
  return std::make_unique<GpuCllmSteps>(start, device);
}

}  // namespace engine

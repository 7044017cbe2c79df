// A small model in training on the CPU, for tests of single passes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/train/core/transformer.h"
#include "engine/train/ops/cpu_device.h"

namespace engine::test {

inline std::vector<float> initial(const ModelConfig& config, std::uint64_t seed = 7) {
  std::vector<float> parameters;
  initialise(parameters, ParameterLayout(config), config, 0.3f, seed);
  return parameters;
}

/// The device of a CPU shard.
struct CpuDevice {
  explicit CpuDevice(Compute of) : device(open_cpu_shard(of)), compute(of) {}
  TrainDevice on() const {
    return {*device, cpu_train_ops(compute),
            compute == Compute::F32 ? kernels::DType::F32 : kernels::DType::BF16};
  }
  std::unique_ptr<kernels::Device> device;
  Compute compute;
};

struct CpuLearner {
  explicit CpuLearner(const ModelConfig& of,
                      Compute compute = Compute::F32,
                      std::uint64_t seed = 7,
                      int max_rows = 64)
      : config(of),
        layout(of),
        parameters(initial(of, seed)),
        cpu(compute),
        packed(pack_weights(parameters.data(), matrices_of(of, layout), compute)),
        pass(cpu.on(), of, layout, max_rows, {.keeps_logits = true}) {}
  CpuLearner(const CpuLearner&) = delete;

  /// The weights as they are now.
  kernels::TrainWeights weights() {
    for (int i = 0; i < packed->n_matrices(); i++) packed->repack(i);
    return {parameters.data(), packed.get()};
  }
  std::vector<float> logits_of(const TrainRows& rows) { return pass.logits(weights(), rows); }
  /// @return  the sum of the rows' weighted losses
  double loss_and_gradient(const TrainRows& rows,
                           std::vector<float>& gradient,
                           const kernels::TrainWeights* teacher = nullptr) {
    loss.assign(rows.token.size(), 0.0f);
    gradient.assign(parameters.size(), 0.0f);
    pass.forward_backward(weights(), rows, gradient.data(), loss.data(), teacher);
    double sum = 0;
    for (std::size_t i = 0; i < loss.size(); i++)
      sum += static_cast<double>(loss[i]) * rows.weight[i];
    return sum;
  }

  const ModelConfig config;
  const ParameterLayout layout;
  std::vector<float> parameters;
  CpuDevice cpu;
  std::unique_ptr<PackedWeights> packed;
  TrainPass pass;
  std::vector<float> loss;  // of each row, of the last pass
};

}  // namespace engine::test

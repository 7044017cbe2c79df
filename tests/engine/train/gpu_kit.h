// Gradients of one pass on the CPU and on a GPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/train/core/parameters.h"
#include "engine/train/core/transformer.h"
#include "kernels/cuda/cuda.h"
#include "tests/engine/train/cpu_learner.h"
#include "tests/engine/train/gpu_devices.h"

namespace engine::test {

struct Found {
  std::vector<float> gradient, loss;
};

inline Found cpu_gradient(const ModelConfig& config,
                          const TrainRows& rows,
                          const kernels::TrainWeights* teacher = nullptr) {
  CpuLearner learner(config);
  Found found;
  learner.loss_and_gradient(rows, found.gradient, teacher);
  found.loss = learner.loss;
  return found;
}

struct GpuPassSettings {
  std::int64_t logit_bytes = VocabRows::kLogitBytes;
  bool teaches = false;
  std::uint64_t teacher_seed = 0;  // of a frozen teacher's weights; 0: there is none
};

/// @param parts  the passes whose gradients are summed
inline Found gpu_gradient(const std::string& name,
                          const ModelConfig& config,
                          kernels::DType type,
                          const std::vector<TrainRows>& parts,
                          const GpuPassSettings& settings = {}) {
  const auto device = kernels::open_cuda(name);
  const ParameterLayout layout(config);
  int n_rows = 0, most = 0;
  for (const TrainRows& rows : parts) {
    n_rows += rows.n_rows();
    most = std::max(most, rows.n_rows());
  }
  const GpuCopy copy(*device, initial(config), type),
      frozen(*device, initial(config, settings.teacher_seed), type);
  const kernels::DeviceBuffer gradient(*device, 4 * layout.n, "a test"),
      loss(*device, 4 * n_rows, "a test");
  const TrainDevice on{*device, kernels::train_kernels(*device), type};
  on.ops.clear(*device, gradient.data(), gradient.bytes());
  TrainPass pass(on, config, layout, most,
                 {.logit_bytes = settings.logit_bytes, .keeps_logits = settings.teaches});
  const kernels::TrainWeights teacher = frozen.weights();
  int first = 0;
  for (const TrainRows& rows : parts) {
    pass.forward_backward(copy.weights(), rows, gradient.f32(), loss.f32() + first,
                          settings.teacher_seed ? &teacher : nullptr);
    first += rows.n_rows();
  }
  Found found{std::vector<float>(static_cast<std::size_t>(layout.n)),
              std::vector<float>(static_cast<std::size_t>(n_rows))};
  device->ops().download(*device, found.gradient.data(), gradient.data(), gradient.bytes());
  device->ops().download(*device, found.loss.data(), loss.data(), loss.bytes());
  return found;
}

/// In each part of the weights, the norm of the differences is at most `share` of the part's norm; twice
/// that for norm weights, whose gradients are sums over rows that cancel.
inline void expect_close(const ModelConfig& config,
                         const std::vector<float>& found,
                         const std::vector<float>& expected,
                         double share) {
  const auto check = [&](std::int64_t at, std::int64_t n, const std::string& what) {
    const double allowed = what.ends_with("norm") ? 2 * share : share;
    double difference = 0, size = 0;
    for (auto i = static_cast<std::size_t>(at); i < static_cast<std::size_t>(at + n); i++) {
      difference += std::pow(static_cast<double>(found[i]) - expected[i], 2);
      size += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_GT(size, 0) << what << ": nothing to compare";
    EXPECT_LT(std::sqrt(difference), allowed * std::sqrt(size)) << what;
  };
  const ParameterLayout layout(config);
  const std::int64_t dim = config.dim, hidden = config.hidden_dim;
  const std::int64_t q = std::int64_t{config.n_heads} * config.head_dim,
                     kv = std::int64_t{config.n_kv_heads} * config.head_dim;
  check(layout.embedding, config.vocab_size * dim, "embedding");
  check(layout.final_norm, dim, "final norm");
  for (const LayerAt& at : layout.layers) {
    check(at.attn_norm, dim, "attention's norm");
    check(at.qkv, q * dim, "queries");
    check(at.qkv + q * dim, kv * dim, "keys");
    check(at.qkv + (q + kv) * dim, kv * dim, "values");
    check(at.attn_out, dim * q, "attention's output");
    check(at.mlp_norm, dim, "feed-forward's norm");
    check(at.gate_up, 2 * hidden * dim, "gate and up");
    check(at.down, dim * hidden, "down");
  }
}

}  // namespace engine::test

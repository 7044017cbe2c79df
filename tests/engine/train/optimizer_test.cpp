// The optimizer: constants of a step, clipping, weight decay. train_ops_test.cpp tests the AdamW operation.
#include <cmath>

#include <gtest/gtest.h>

#include "engine/train/core/optimizer.h"

namespace engine {
namespace {

constexpr std::size_t kParameters = 5;

std::vector<float> after(int n_steps, const OptimizerSettings& settings, bool decays, float size) {
  Workers workers(1);
  Optimizer optimizer(settings, {{0, kParameters, decays}}, train_table());
  std::vector<float> parameters(kParameters, 1.0f);
  for (int step = 1; step <= n_steps; step++) {
    std::vector<std::vector<float>> gradients{{size, -size, 2 * size, 3 * size, 0}};
    optimizer.update(parameters, gradients, step, 0.01, workers);
  }
  return parameters;
}

// With both moments divided by 1 - beta^t, a constant gradient g gives a step of g / |g| for any size of
// g; without, the first step would be 0.1 / sqrt(0.05) of that.
// Three f32 steps of 0.01 from 1: 1e-6 covers their rounding.
TEST(Optimizer, constant_gradient_steps_by_the_learning_rate) {
  OptimizerSettings settings;
  settings.clip = 1e9;
  for (const int n_steps : {1, 2, 3}) {
    for (const float size : {0.001f, 5.0f}) {
      const auto w = after(n_steps, settings, false, size);
      const float moved = 0.01f * static_cast<float>(n_steps);
      EXPECT_NEAR(w[0], 1 - moved, 1e-6) << n_steps << " steps of " << size;
      EXPECT_NEAR(w[1], 1 + moved, 1e-6);
      EXPECT_NEAR(w[3], 1 - moved, 1e-6);
      EXPECT_EQ(w[4], 1.0f);
    }
  }
}

TEST(Optimizer, weight_decay_applies_to_decaying_runs_only) {
  OptimizerSettings settings;
  settings.weight_decay = 0.5;
  EXPECT_NEAR(after(1, settings, true, 1)[4], 1 - 0.01 * 0.5, 1e-7);
  EXPECT_EQ(after(1, settings, false, 1)[4], 1.0f);
}

TEST(Optimizer, clips_by_the_norm_of_all_shards) {
  Workers workers(2);
  OptimizerSettings settings;
  Optimizer optimizer(settings, {{0, 2, false}}, train_table());
  std::vector<float> parameters{1, 1};
  std::vector<std::vector<float>> gradients{{1, 4}, {2, 0}};  // together (3, 4): norm 5
  EXPECT_NEAR(optimizer.update(parameters, gradients, 1, 0.01, workers), 5, 1e-6);
  EXPECT_NEAR(optimizer.mean[0], 0.1 * 3 / 5, 1e-7);
  EXPECT_NEAR(optimizer.mean[1], 0.1 * 4 / 5, 1e-7);
  for (const auto& shard : gradients) EXPECT_EQ(shard, (std::vector<float>{0, 0}));

  const auto before = parameters;
  gradients = {{NAN, 0}, {0, 0}};
  EXPECT_FALSE(std::isfinite(optimizer.update(parameters, gradients, 2, 0.01, workers)));
  EXPECT_EQ(parameters, before);
}

}  // namespace
}  // namespace engine

// Low-rank updates in training: sums and gradients against plain loops and finite differences, and the adapter that is written.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/train/core/transformer.h"
#include "engine/train/lora/low_rank_weights.h"
#include "tests/engine/train/cpu_learner.h"
#include "tests/engine/train/gradient_check.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_target.h"
#include "tests/engine/train/two_texts.h"

namespace engine {
namespace {

using test::CpuLearner;
using test::small_model;
using test::spread;

/// W + B A of every matrix by loops; `updates` in the order of the layout.
std::vector<float> summed(const LowRankLayout& layout,
                          std::vector<float> weights,
                          const std::vector<float>& updates) {
  const auto at = [](std::int64_t begin, int row, int width, int column) {
    return static_cast<std::size_t>(begin + std::int64_t{row} * width + column);
  };
  for (const LowRankMatrix& m : layout.matrices) {
    const auto [first, n_out, n_in] = m.matrix;
    for (int out = 0; out < n_out; out++)
      for (int in = 0; in < n_in; in++)
        for (int r = 0; r < layout.rank; r++)
          weights[at(first, out, n_in, in)] +=
              updates[at(m.b, r, n_out, out)] * updates[at(m.a, r, n_in, in)];
  }
  return weights;
}

/// A small model with updates of a rank, none of them zero, in training on two shards.
struct Updated {
  explicit Updated(const LowRank& settings, const ModelConfig& of = small_model(2))
      : config(of),
        layout(config, settings),
        base(test::initial(config)),
        updates(spread(static_cast<std::size_t>(layout.n), 3)),
        optimizer({.beta1 = 0.5, .clip = 1e6}, layout.runs(), train_table()),
        workers(2) {
    for (float& value : updates) value *= 0.2f;
    weights = low_rank_weights({Compute::F32, workers, 2}, layout,
                               {base, matrices_of(config, ParameterLayout(config))},
                               {updates, optimizer}, 64);
  }
  std::vector<float> masters() const {
    const float* const first = weights->weights().masters;
    return {first, first + base.size()};
  }

  ModelConfig config;
  LowRankLayout layout;
  std::vector<float> base, updates;
  Optimizer optimizer;
  Workers workers;
  std::unique_ptr<TrainableWeights> weights;
};

TEST(LowRank, layout_has_the_named_projections) {
  const ModelConfig config = small_model();
  const LowRankLayout all(config, {.rank = 4});
  EXPECT_EQ(all.matrices.size(), 14u) << "seven in each of two layers";
  const LowRankLayout some(config, {.rank = 4, .targets = {"v_proj", "down_proj"}});
  ASSERT_EQ(some.matrices.size(), 4u);
  EXPECT_EQ(some.matrices[0].module, "model.layers.0.self_attn.v_proj");
  EXPECT_EQ(some.matrices[0].matrix.n_out, config.head_dim) << "one head of keys and values";
  EXPECT_EQ(some.matrices[3].module, "model.layers.1.mlp.down_proj");
  EXPECT_EQ(some.matrices[3].matrix.n_in, config.hidden_dim);
}

TEST(LowRank, start_is_uniform_for_a_and_zero_for_b) {
  const LowRankLayout layout(small_model(), {.rank = 16});
  const std::vector<float> values = layout.initial(5);
  EXPECT_EQ(values, layout.initial(5));
  EXPECT_NE(values, layout.initial(6));
  for (const LowRankMatrix& m : layout.matrices) {
    const double bound = 1 / std::sqrt(m.matrix.n_in);
    double squares = 0;
    for (int i = 0; i < layout.rank * m.matrix.n_in; i++) {
      const double value = values[static_cast<std::size_t>(m.a + i)];
      ASSERT_LE(std::abs(value), bound);
      squares += value * value;
    }
    EXPECT_NEAR(squares / (layout.rank * m.matrix.n_in), bound * bound / 3, 0.1 * bound * bound);
    for (int i = 0; i < layout.rank * m.matrix.n_out; i++)
      ASSERT_EQ(values[static_cast<std::size_t>(m.b + i)], 0);
  }
}

TEST(LowRank, weights_are_the_fixed_ones_plus_the_updates) {
  Updated model({.rank = 3, .targets = {"q_proj", "k_proj", "gate_proj", "down_proj"}});
  const std::vector<float> expected = summed(model.layout, model.base, model.updates);
  EXPECT_THAT(model.masters(), testing::Pointwise(testing::FloatNear(1e-5f), expected));
  // A step with a gradient of one weight changes the updates of its matrix, and so the sum.
  const LowRankMatrix& first = model.layout.matrices.front();
  model.weights->gradient(1)[first.matrix.at] = 1;
  std::vector<float> loss(1);
  model.weights->losses(1)[0] = 0;
  EXPECT_GT(model.weights->update(1, 0.01, loss), 0);
  EXPECT_EQ(model.weights->gradient(1)[first.matrix.at], 0) << "cleared for the next step";
  const std::vector<float> after = summed(model.layout, model.base, model.updates);
  EXPECT_NE(after, expected);
  EXPECT_THAT(model.masters(), testing::Pointwise(testing::FloatNear(1e-5f), after));
}

TEST(LowRank, gradient_is_the_derivative) {
  Updated model({.rank = 3});
  const test::Texts texts = test::two_texts();
  std::vector<TrainPass> passes;
  for (int shard = 0; shard < 2; shard++)
    passes.emplace_back(model.weights->device(shard), model.config, ParameterLayout(model.config),
                        32);
  float* const losses = model.weights->losses(64);
  // Both shards read the same rows, so the gradient is that of twice the loss.
  model.weights->for_shards([&](int shard) {
    passes[static_cast<std::size_t>(shard)].forward_backward(model.weights->weights(), texts.rows(),
                                                             model.weights->gradient(shard),
                                                             losses + 32 * shard);
  });
  std::vector<float> updates = model.updates, loss(64), ignored;
  model.weights->update(1, 1e-3, loss);
  // The mean of the gradient after the first step is (1 - beta1) times the gradient.
  std::vector<float> gradient = model.optimizer.mean;
  for (float& value : gradient) value *= 2;
  CpuLearner learner(model.config);
  const auto loss_of_updates = [&] {
    std::ranges::copy(summed(model.layout, model.base, updates), learner.parameters.begin());
    return 2 * learner.loss_and_gradient(texts.rows(), ignored);
  };
  test::expect_gradient(updates, gradient, loss_of_updates, "update", 23, 3e-3, 0x1p-8f);
}

TEST(LowRank, step_without_a_finite_gradient_changes_nothing) {
  Updated model({.rank = 2});
  const std::vector<float> updates = model.updates, sums = model.masters();
  model.weights->gradient(0)[model.layout.matrices.front().matrix.at] = INFINITY;
  std::vector<float> loss(1);
  model.weights->losses(1)[0] = 0;
  EXPECT_TRUE(std::isnan(model.weights->update(1, 0.01, loss)));
  EXPECT_EQ(model.updates, updates);
  EXPECT_EQ(model.masters(), sums);
}

class LowRankAdapter : public test::SmallTarget {};

TEST_F(LowRankAdapter, written_adapter_gives_the_same_weights) {
  const LowRankLayout layout(files_.config, {.rank = 5, .targets = {"q_proj", "up_proj"}});
  std::vector<float> values = spread(static_cast<std::size_t>(layout.n), 9);
  for (float& value : values) value *= 0.1f;
  const LoraAdapter adapter = layout.adapter(values, "org/base");
  const std::string folder = path("adapter");
  write_adapter(folder, adapter, kernels::DType::BF16);
  const LoraAdapter read = open_adapter(folder);
  EXPECT_EQ(read.base, "org/base");
  EXPECT_EQ(read.updates.size(), 2u);
  const auto tensors = with_adapter(files_.tensors, tensors_of(files_.config), adapter);
  const ModelFiles merged = open_model(target_dir() + "+" + folder);
  std::vector<float> base;
  load_tensors(*files_.tensors, files_.config, base);
  for (const TensorSpec& spec : tensors_of(files_.config))
    EXPECT_EQ(f32_of(merged.tensors->read(spec.name)), f32_of(tensors->read(spec.name)))
        << spec.name;
  // Rounded to bf16, the updates are within 2^-8 of the trained ones.
  std::vector<float> found;
  load_tensors(*merged.tensors, files_.config, found);
  EXPECT_THAT(found, testing::Pointwise(testing::FloatNear(2e-3f), summed(layout, base, values)));
  EXPECT_NE(found, base);
}

}  // namespace
}  // namespace engine

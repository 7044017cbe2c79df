// A consistency training of a few thousand weights: a recipe, and trajectories of counting texts.
#pragma once

#include <string>
#include <vector>

#include "engine/train/cllm/recipe.h"
#include "engine/train/cllm/trainer.h"
#include "engine/train/core/parameters.h"
#include "tests/engine/train/small_model.h"

namespace engine::test {

inline CllmRecipe small_cllm_recipe(const std::string& more = {}) {
  return cllm_recipe_from(
      R"({"name": "small", "mixture": {"arith": {"weight": 1}}, "block": 6, "prompts": 40,
          "context": 96, "points": 3, "batch_texts": 4, "replay_texts": 2, "epochs": 6,
          "peak_lr": 0.01, "warmup_steps": 4, "checkpoint_minutes": 100, "shards": 2,
          "compute": "f32")" +
          more + "}",
      "test");
}

/// A counting text, and blocks that converge by one token per iteration.
inline Trajectory counting_trajectory(std::int64_t index) {
  Trajectory t;
  t.index = index;
  const auto start = static_cast<TokenId>(3 + index * 7 % 40);
  for (int i = 0; i < 4; i++) t.prompt.push_back(start + i);
  for (int i = 0; i < 12; i++) t.output.push_back(start + 4 + i);
  t.truth = t.output;
  for (std::size_t begin = 0; begin < 12; begin += 6) {
    const std::vector<TokenId> fixed_point(
        t.output.begin() + static_cast<std::ptrdiff_t>(begin),
        t.output.begin() + static_cast<std::ptrdiff_t>(begin) + 6);
    BlockPoints points;
    for (std::size_t right = 0; right <= 6; right++) {
      points.push_back(fixed_point);
      for (std::size_t i = right; i < 6; i++)
        points.back()[i] = static_cast<TokenId>(1 + (index * 5 + static_cast<int>(i * right)) % 60);
    }
    t.blocks.push_back(std::move(points));
  }
  return t;
}

inline CllmTraining small_cllm_training() {
  CllmTraining training;
  training.model = small_model(2);
  initialise(training.parameters, ParameterLayout(training.model), training.model, 0.02f, 5);
  for (std::int64_t i = 0; i < 20; i++) training.trajectories.push_back(counting_trajectory(i));
  training.replay = [](std::int64_t index) {
    const Trajectory t = counting_trajectory(100 + index % 50);
    return truth_of(t);
  };
  return training;
}

}  // namespace engine::test

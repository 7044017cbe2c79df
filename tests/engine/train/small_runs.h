// Trainings of a few thousand weights: a recipe, texts and a folder.
#pragma once

#include <unistd.h>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "engine/train/core/packing.h"
#include "engine/train/core/trainer.h"
#include "engine/train/run/recipe.h"

namespace engine::test {

/// A temporary folder for the runs of a test.
class TrainingFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (char& c : name)
      if (c == '/') c = '_';
    directory_ = std::filesystem::temp_directory_path() /
                 ("train_test_" + std::to_string(::getpid()) + "_" + name);
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string directory(const std::string& name) const { return (directory_ / name).string(); }
  std::filesystem::path directory_;
};

inline TrainRecipe small_recipe(const std::string& compute) {
  TrainRecipe r = train_recipe_from(
      R"({"name": "small", "model": {"layers": 2, "dim": 32, "hidden_dim": 64, "heads": 1,
          "max_seq_len": 64}, "context": 32, "batch_tokens": 256, "open_rows": 4, "peak_lr": 0.01,
          "warmup_steps": 4, "tokens": 9000, "checkpoint_minutes": 100, "shards": 2})",
      "test");
  r.model.vocab_size = 64;
  r.compute = compute;
  return r;
}

/// A text that counts up from a start, so the next token can be learned.
inline TokenText counting(std::int64_t index) {
  TokenText text;
  const auto start = static_cast<TokenId>(index * 7 % 40);
  const int n = 5 + static_cast<int>(index * 11 % 17);
  for (int i = 0; i < n; i++) text.tokens.push_back((start + i) % 60 + 1);
  text.n_prompt = 2;
  return text;
}

}  // namespace engine::test

// Consistency training: trajectories of a target in, weights out. Like the trainer of targets
// (trainer.h) a run is a function of (recipe, trajectories, replay, weights, shards, engine of
// products and device): stopped and resumed it ends with the same bits, where its length is given
// in epochs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/event/recording/training_report.h"
#include "engine/checkpoint/config.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/core/trainer.h"
#include "kernels/device.h"

namespace engine {

struct CllmProgress {
  std::int64_t step = 0, n_steps = 0;      // n_steps 0: until the minutes are over
  std::int64_t rows = 0;                   // so far, of texts, chains and replay
  double loss = 0;                         // weighted sum of the parts, of this step
  std::array<double, kLossParts> parts{};  // mean of each, nats a row; 0 where a step has none
  double lr = 0, gradient_norm = 0;
  double rows_per_second = 0;
  double done = 0;  // 0 to 1
  double seconds = 0, seconds_left = 0;
};

struct CllmCallbacks {
  std::function<void(const CllmProgress&)> progress;  // every step; may be empty
  std::function<void(const std::string&)> notice;     // a line for a person; may be empty
  const std::atomic<bool>* stop = nullptr;
  /// Measures the weights as they stand; called every recipe.probe_minutes. May be empty.
  std::function<NamedFigures(std::int64_t step, const std::vector<float>& parameters)> probe;
};

struct CllmOptions {
  int n_threads = 0;  // 0: as many as the machine runs at once
  bool resume = false;
  std::string directory;             // checkpoint.bin and training.jsonl
  std::int64_t stop_after_step = 0;  // for tests; 0: at the recipe's end
};

struct CllmTraining {
  ModelConfig model;
  std::vector<float> parameters;         // of the target, as ParameterLayout lays them
  std::vector<Trajectory> trajectories;  // at least one; augmented if they shall be
  TokenSource replay;  // text number i; may be empty where recipe.replay_texts is 0
};

/// What a text's rows (recipe.context of them) had no room for, of all steps so far.
struct RoomCounts {
  bool known = false;           // false: nothing was trained, or begun by a program that counts not
  std::int64_t n_points = 0;    // drawn, to be learnt beside their text
  std::int64_t n_left_out = 0;  // of these: no room for them, or for what teaches them
  std::int64_t n_texts = 0;     // replayed, or the true answers of texts
  std::int64_t n_texts_cut = 0;  // of these: longer, and learnt up to there
  bool operator==(const RoomCounts&) const = default;
};

struct CllmResult {
  bool finished = false;
  std::int64_t step = 0, steps_done = 0;
  std::int64_t rows = 0;
  double seconds = 0;
  std::array<double, kLossParts> parts{};  // mean of the last n_losses steps
  int n_losses = 0;
  RoomCounts room;
  std::string compute;
  std::vector<float> parameters;
};

/// @param device  a CUDA device to train on; null: the CPU
/// @throws as train()
CllmResult train_consistency(const CllmRecipe& recipe,
                             CllmTraining training,
                             const CllmOptions& options,
                             const CllmCallbacks& callbacks,
                             kernels::Device* device = nullptr);

}  // namespace engine

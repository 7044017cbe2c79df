// Consistency training on the trajectories of a target. As in train() (core/trainer.h), the result
// is a function of (recipe, trajectories, replay, weights, shards, compute, device). If the length
// is given in epochs, stopping and resuming a run does not change the bits of its result.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/event/recording/training_report.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/core/trainer.h"
#include "kernels/device.h"

namespace engine {

/// Progress of a consistency training.
struct CllmProgress {
  std::int64_t step = 0, n_steps = 0;      // n_steps is 0 if the length is given in minutes
  std::int64_t rows = 0;                   // rows of texts, chains and replayed texts so far
  double loss = 0;                         // weighted sum of the loss's parts in this step
  std::array<double, kLossParts> parts{};  // mean loss of each part, nats per row; 0 without rows
  double lr = 0, gradient_norm = 0;
  double rows_per_second = 0;
  double done = 0;  // 0 to 1
  double seconds = 0, seconds_left = 0;
};

/// Callbacks of a consistency training.
struct CllmCallbacks {
  std::function<void(const CllmProgress&)> progress;  // every step; may be empty
  // receives a message for the user; may be empty
  std::function<void(const std::string&)> notice;
  const std::atomic<bool>* stop = nullptr;
  /// Measures the current weights, or low-rank updates; called every recipe.probe_minutes. May be empty.
  std::function<NamedFigures(std::int64_t step, const std::vector<float>& parameters)> probe;
};

/// Options of a run.
struct CllmOptions {
  int n_threads = 0;  // 0: all hardware threads
  bool resume = false;
  std::string directory;             // checkpoint.bin and training.jsonl
  std::int64_t stop_after_step = 0;  // for tests; 0: at the recipe's end
};

/// Input of a consistency training.
struct CllmTraining {
  ModelConfig model;
  std::vector<float> parameters;  // the target's weights in the order of ParameterLayout
  // embedding and output matrix of a `model` without them; else null. Outlives the training
  const SharedEmbedding* shared = nullptr;
  std::vector<Trajectory> trajectories;  // at least one; already augmented if wanted
  TokenSource replay;  // text number i; may be empty where recipe.replay_texts is 0
};

/// Counts of points and texts that did not fit into recipe.context rows, over all steps so far.
struct RoomCounts {
  bool known = false;            // false: no steps yet, or the checkpoint has no counts
  std::int64_t n_points = 0;     // points drawn
  std::int64_t n_left_out = 0;   // of these: skipped, because they or their teachers did not fit
  std::int64_t n_texts = 0;      // replayed texts and true answers
  std::int64_t n_texts_cut = 0;  // of these: cut at the context
  bool operator==(const RoomCounts&) const = default;
};

/// Result of a run.
struct CllmResult {
  bool finished = false;
  std::int64_t step = 0, steps_done = 0;
  std::int64_t rows = 0;
  double seconds = 0;
  std::array<double, kLossParts> parts{};  // mean of the last n_losses steps
  int n_losses = 0;
  RoomCounts room;
  std::string compute;
  std::vector<float>
      parameters;  // all weights, or the low-rank updates in the order of LowRankLayout
};

/// Trains until the recipe's end, the stop flag or options.stop_after_step.
/// @param device  a CUDA device to train on; null: the CPU
/// @throws as train()
CllmResult train_consistency(const CllmRecipe& recipe,
                             CllmTraining training,
                             const CllmOptions& options,
                             const CllmCallbacks& callbacks,
                             kernels::Device* device = nullptr);

}  // namespace engine

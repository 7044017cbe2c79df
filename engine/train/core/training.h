// Input, options, callbacks and result of a training of any kind.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/event/recording/training_report.h"

namespace engine {

struct SharedEmbedding;  // engine/train/draft/shared_embedding.h
struct TokenText;

/// Returns the tokenized text `index` of an endless stream. Called from several threads at once.
using TokenSource = std::function<TokenText(std::int64_t index)>;

/// The log entry of a step, and figures that the log does not have.
struct TrainProgress : TrainingReport {
  double completion_loss = 0;  // mean over completion tokens of this step
  double answer_loss = 0;      // mean over tokens with answer_weight; 0 if answer_weight is 1
  double done = 0;             // 0 to 1
};

/// Callbacks of a training.
struct TrainCallbacks {
  std::function<void(const TrainProgress&)> progress;  // every step; may be empty
  // receives a message for the user; may be empty
  std::function<void(const std::string&)> notice;
  const std::atomic<bool>* stop = nullptr;  // set by Ctrl+C: save and return
  /// Called with true before work that cannot check `stop`, and with false after it. The first call
  /// may throw Error(Cancelled). May be empty.
  std::function<void(bool begins)> unstoppable;
  /// Measures the current weights (in the order of ParameterLayout); called every
  /// recipe.probe_minutes. May be empty.
  std::function<NamedFigures(const std::vector<float>& parameters)> probe;
};

/// Options of a run.
struct TrainOptions {
  int n_threads = 0;  // 0: as many as the process may use
  bool resume = false;
  /// The directory of checkpoint.bin and training.jsonl; created if absent.
  std::string directory;
  /// Initial weights in the order of ParameterLayout; empty: random. Ignored by a resumed run.
  std::vector<float> start_from;
  /// The target's embedding, if a draft shares it; else null. Outlives the run.
  const SharedEmbedding* shared = nullptr;
  /// The name of the CUDA device to train on; empty, "auto" or "cpu": the CPU.
  std::string device;
  /// Stop (and save) after this step, for tests; 0: at the recipe's end.
  std::int64_t stop_after_step = 0;
};

/// Result of a run.
struct TrainResult {
  bool finished = false;  // false: stopped, resume continues
  std::int64_t step = 0;
  std::int64_t steps_done = 0;  // by this call
  std::int64_t tokens = 0;
  double seconds = 0;
  double completion_loss = 0;  // mean of the last n_losses steps
  int n_losses = 0;            // 100, or the number of steps of this call if smaller
  std::string compute;
  // steps of this call that were skipped because the loss or its gradient was not finite
  std::int64_t n_skipped_steps = 0;
  std::int64_t n_texts_cut = 0;
  double fill = 0;  // share of a packed row that holds text
  std::vector<float> parameters;
};

}  // namespace engine

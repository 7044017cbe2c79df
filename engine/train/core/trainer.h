// Trains a model by a recipe: texts in, weights out. The run is a function of (recipe, texts,
// shards, engine of products and device), so a run that was stopped and resumed ends with the same
// bits as one that never was, when its length is given in tokens. (Given in minutes the learning
// rate follows the clock, and two runs differ.)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/event/recording/training_report.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/core/packing.h"
#include "engine/train/run/recipe.h"
#include "kernels/device.h"

namespace engine {

/// Text number `index` of an endless stream, tokenized. Called from several threads at once.
using TokenSource = std::function<TokenText(std::int64_t index)>;

/// What its log says of a step, and what a person or a test asks besides.
struct TrainProgress : TrainingReport {
  double completion_loss = 0;  // mean over completion tokens of this step
  double answer_loss = 0;      // mean over the tokens answer_weight counts; 0 where it is 1
  double done = 0;             // 0 to 1
};

struct TrainCallbacks {
  std::function<void(const TrainProgress&)> progress;  // every step; may be empty
  std::function<void(const std::string&)> notice;      // a line for a person; may be empty
  const std::atomic<bool>* stop = nullptr;             // set by Ctrl+C: save and return
  /// Told before work that cannot look at `stop` (true; it may throw Error(Cancelled) instead of
  /// letting that begin) and behind it (false); may be empty.
  std::function<void(bool begins)> unstoppable;
  /// Measures the weights as they stand, laid as ParameterLayout does; asked every
  /// recipe.probe_minutes. May be empty.
  std::function<NamedFigures(const std::vector<float>& parameters)> probe;
};

struct TrainOptions {
  int n_threads = 0;  // 0: as many as the process may use
  bool resume = false;
  /// Where checkpoint.bin and training.jsonl lie; made if absent.
  std::string directory;
  /// Weights to start from, as ParameterLayout lays them; empty: random ones. A resumed run has its
  /// own.
  std::vector<float> start_from;
  /// A CUDA device's name to train on; empty, "auto" or "cpu": the CPU.
  std::string device;
  /// Stop (and save) after this step, for tests; 0: at the recipe's end.
  std::int64_t stop_after_step = 0;
};

struct TrainResult {
  bool finished = false;  // false: stopped, resume continues
  std::int64_t step = 0;
  std::int64_t steps_done = 0;  // by this call
  std::int64_t tokens = 0;
  double seconds = 0;
  double completion_loss = 0;  // mean of the last n_losses steps
  int n_losses = 0;            // 100, or the steps of this call where those are fewer
  std::string compute;
  std::int64_t n_left_out = 0;  // steps of this call whose gradient was no finite number
  std::int64_t n_texts_cut = 0;
  double fill = 0;  // share of a packed row that holds text
  std::vector<float> parameters;
};

/// A device of TrainOptions, opened; null: the CPU.
/// @throws Error(Device)  in one line, if it is not here or is none that trains
std::unique_ptr<kernels::Device> open_training_device(const std::string& name);

/// @param recipe  with model.vocab_size set
/// @param device  options.device, opened before; null: it is opened here
/// @throws Error(Usage)      if the directory holds a checkpoint and resume is not asked for
/// @throws Error(BadInput)   if resume finds a checkpoint of another recipe, or a damaged one, or a
///                           text has a token that is none of the vocabulary's
/// @throws Error(Resources)  if the directory cannot be written
/// @throws Error(Device)     if the device is not here or fails, or loss and gradient were no
///                           finite numbers TrainingLoop::kMostLeftOut times in a row
TrainResult train(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks,
                  std::unique_ptr<kernels::Device> device = nullptr);

}  // namespace engine

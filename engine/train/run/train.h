// The commands `train target`, `train draft` and `train tokenizer`: each reads a recipe file and
// writes a directory.
#pragma once

#include <memory>
#include <string>

#include "engine/base/limits.h"
#include "engine/train/core/trainer.h"

namespace engine {

/// Input and output of a training.
struct TrainRequest {
  std::string recipe;     // path of the recipe's JSON file
  std::string tokenizer;  // directory with tokenizer.model; train_tokenizer() ignores it
  std::string out;        // directory to write
  std::string data;       // folder of the open texts; empty if the mixture needs none
  std::string from;       // directory of the initial model; empty: random weights
  std::string own_texts;  // file of the target's texts, for recipes with own_outputs
  // path of the model that wrote these texts, for the card; empty: not available. A draft that shares its target's embedding
  // needs it
  std::string target;
  bool resume = false;
  int n_threads = 0;   // 0: as many as the process may use
  std::string device;  // for train_model(), as TrainOptions::device
  FileLimits limits;   // limits on the files of the tokenizer and the model
};

/// Result of training a tokenizer.
struct TokenizerResult {
  int vocab_size = 0;
  std::int64_t sample_bytes = 0;  // read
  double seconds = 0;
};

/// Trains a tokenizer and writes out/tokenizer.model and out/tokenizer_config.json.
/// @throws Error(BadInput)   for a bad recipe or bad texts
/// @throws Error(Resources)  if the directory cannot be written
/// @throws Error(Cancelled)  if stopped while reading the sample
TokenizerResult train_tokenizer(const TrainRequest& request, const TrainCallbacks& callbacks);

/// Trains a target or a draft model (they differ in their recipes). out/ holds checkpoint.bin and
/// training.jsonl; a finished run also writes a Hugging Face directory in bf16 with a model card,
/// README.md. If the callbacks' flag stops the run, it saves and returns finished = false; the same
/// request with resume continues it.
/// @param device  the opened request.device; null: opens it
TrainResult train_model(const TrainRequest& request,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device = nullptr);

/// Checks that the checkpoint to resume belongs to the same recipe. Call it before the target
/// writes texts.
/// @throws Error(BadInput)
void check_checkpoint(const TrainRequest& request);

/// State of a training run at its last checkpoint.
struct ExportResult {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::string compute;
};

/// Writes the Hugging Face directory of the last checkpoint, to inspect an unfinished run.
ExportResult export_checkpoint(const TrainRequest& request);

}  // namespace engine

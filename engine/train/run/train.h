// Training as a person asks for it: a recipe file in, a directory out.
#pragma once

#include <memory>
#include <string>

#include "engine/base/limits.h"
#include "engine/train/core/trainer.h"

namespace engine {

struct TrainRequest {
  std::string recipe;     // path of the recipe's JSON file
  std::string tokenizer;  // directory with tokenizer.model; not for train_tokenizer
  std::string out;        // directory to write
  std::string data;       // folder of the open texts; empty if the mixture needs none
  std::string from;       // directory of a model to start from; empty: random weights
  std::string own_texts;  // file of the target's texts, for recipes with own_outputs
  std::string target;     // directory of that target, for the card; empty: not here
  bool resume = false;
  int n_threads = 0;   // 0: as many as the process may use
  std::string device;  // of train_model: as TrainOptions has it
  FileLimits limits;   // of the tokenizer's and the model's files
};

struct TokenizerResult {
  int vocab_size = 0;
  std::int64_t sample_bytes = 0;  // read
  double seconds = 0;
};

/// Writes out/tokenizer.model and out/tokenizer_config.json.
/// @throws Error(BadInput), Error(Resources)  as the recipe, the stream and the disk do
/// @throws Error(Cancelled)  stopped while the sample was read
TokenizerResult train_tokenizer(const TrainRequest& request, const TrainCallbacks& callbacks);

/// Trains a target or a draft model (they differ in their recipes). While it runs, out/ holds
/// checkpoint.bin and training.jsonl; when it is finished, also a Hugging Face directory in bf16
/// with a model card, README.md. Stopped by the callbacks' flag, it has saved and returns
/// finished = false; the same request with resume continues.
/// @param device  request.device, opened before; null: it is opened here
TrainResult train_model(const TrainRequest& request,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device = nullptr);

/// Refuses to resume a checkpoint of another recipe, before the target's texts are written.
/// @throws Error(BadInput)
void check_checkpoint(const TrainRequest& request);

/// Of a training run, as its last checkpoint has it.
struct ExportResult {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::string compute;
};

/// The Hugging Face directory of a checkpoint as it stands, for a look at a run that goes on.
ExportResult export_checkpoint(const TrainRequest& request);

}  // namespace engine

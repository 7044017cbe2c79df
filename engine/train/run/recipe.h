// The recipes for training a model or a tokenizer, read from JSON files such as those in
// assets/recipes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// How a model is trained.
struct TrainRecipe {
  std::string name;     // "demo-target"
  std::string mixture;  // JSON object of parts, as TrainingStream reads it
  /// If count is above 0, the training texts are those that a target writes, and `mixture` is ignored.
  OutputsPlan own_outputs;
  std::string target = "demo-target";  // the model that writes these texts: NAME or directory
  ModelConfig model;                   // vocab_size and special ids come from the tokenizer
  /// True: a draft that shares the embedding and the output matrix of `target` (engine/checkpoint/draft/sharing_draft.h).
  /// `model` then comes from the target, except for the number of layers.
  bool shares_embedding = false;
  /// Such a draft: the target's layers that its layers are copied from.
  std::vector<int> from_layers;
  /// Such a draft: the number of most frequent tokens in the texts that it can propose; 0: all, or output_tokens.
  int n_output_tokens = 0;
  std::vector<TokenId> output_tokens;  // those tokens, ascending; empty: not chosen yet, or all
  int context = 256;                   // tokens of a packed row; longer texts are cut
  int batch_tokens = 4096;
  int open_rows = 60;  // rows that the packer keeps open
  double peak_lr = 2e-3;
  double final_lr = 0.04;  // last learning rate, as a share of the peak
  int warmup_steps = 100;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0.05;  // applies to matrices, not to norms
  double clip = 1;             // largest norm of the gradient
  double prompt_weight = 0.1;  // weight of the loss on prompts
  double answer_weight = 1;    // weight of the loss on the final answer of a completion
  double init_deviation = 0.02;
  std::int64_t tokens = 0;  // length of the run in tokens
  double minutes = 0;       // length of the run if tokens is 0
  double checkpoint_minutes = 3;
  double probe_minutes = 0;  // interval of measuring accuracy for the log; 0: never
  int probe_problems = 20;   // problems of each task; half have level 1, half level 2
  std::uint64_t seed = 1;
  std::string compute = "auto";  // "auto", "f32", "bf16-amx" or "bf16-onednn"
  int shards = 0;  // CPU: parts of a batch, each with a gradient; 0: the number of threads
};

/// How a tokenizer is trained.
struct TokenizerRecipe {
  std::string name;
  std::string mixture;  // JSON object of parts, as TrainingStream reads it
  int vocab_size = 2048;
  std::int64_t sample_bytes = 20'000'000;
  std::uint64_t seed = 1;
};

/// Parses a recipe.
/// @param path  for messages
/// @throws Error(BadInput)  "path: field: found X, expected Y"
TrainRecipe train_recipe_from(const std::string& json, const std::string& path);
/// Parses a tokenizer's recipe; as train_recipe_from().
TokenizerRecipe tokenizer_recipe_from(const std::string& json, const std::string& path);
/// Reads and parses a file; as train_recipe_from().
TrainRecipe read_train_recipe(const std::string& path);
/// Reads and parses a file; as train_recipe_from().
TokenizerRecipe read_tokenizer_recipe(const std::string& path);
/// The recipe as JSON with every field; parsing it gives the same recipe.
std::string to_json(const TrainRecipe& recipe);

}  // namespace engine

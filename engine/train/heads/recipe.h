// The recipe for training draft heads, read from a JSON file (assets/recipes/medusa.json,
// chimera.json), and the part "own_outputs" of any recipe, about texts that a target writes.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/heads_files.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// How draft heads are trained.
struct HeadsRecipe {
  std::string name;                    // "demo-medusa"
  std::string target = "demo-target";  // NAME or directory
  OutputsPlan outputs;                 // the training texts
  int probe_texts = 200;               // texts of the split dev on which accuracies are measured

  HeadsKind kind = HeadsKind::Medusa;
  int heads = 4;
  double head_decay = 1;       // the loss of head k has the weight head_decay^k
  int layers = 1;              // Medusa: residual layers
  bool target_output = false;  // the heads end in the target's output matrix, which stays as it is
  // with target_output: the number of tokens that the heads rank, the most frequent ones in the
  // answers; 0: all
  int output_tokens = 0;
  // Chimera
  int gram = 3;
  bool by_first_layer = false;  // "token_encoder": "first_layer", as in HeadsConfig; gram is 1
  bool residual = true;         // true: a head's input includes the hidden state
  bool finetune_first_layer = false;  // train a copy of the target's embedding, too
  bool sees_committed_grams = true;   // false: chains attend only to hidden states of the text
  int hidden_dim = 0;                 // of the encoder; 0: the target's
  int attention_heads = 0;            // of the encoder; 0: the target's
  int head_hidden_dim = 64;           // with target_output: of each head
  double feature_weight = 1;          // weight of the mean square of f - h
  bool self_fed = false;              // chains hold the heads' own guesses instead of the text
  double init_deviation = 0.02;

  int batch_texts = 16;
  double peak_lr = 1e-3;
  double final_lr = 0.04;  // last learning rate, as a share of the peak
  int warmup_steps = 40;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0;
  double clip = 1;
  double epochs = 0;   // length of the run in passes over all texts
  double minutes = 0;  // length of the run if epochs is 0
  double checkpoint_minutes = 3;
  int probe_steps = 50;            // steps between measurements of accuracy for the log; 0: none
  double hidden_megabytes = 1024;  // maximum size of hidden states kept in memory
  std::uint64_t seed = 1;
  std::string compute = "auto";
  int shards = 0;
};

/// Parses a recipe.
/// @param kind  the expected kind of heads
/// @param path  for messages
/// @throws Error(BadInput)  "path: field: found X, expected Y"
HeadsRecipe heads_recipe_from(const std::string& json, HeadsKind kind, const std::string& path);
/// Reads and parses a file. @throws as heads_recipe_from()
HeadsRecipe read_heads_recipe(const std::string& path, HeadsKind kind);
/// The recipe as JSON with every field that applies; parsing it gives the same recipe.
std::string to_json(const HeadsRecipe& recipe);

/// The part of any recipe about texts that a target writes.
struct OutputsRecipe {
  std::string name;
  std::string target;
  OutputsPlan plan;
};
/// Reads this part from a recipe's file.
/// @throws Error(BadInput)  also if the recipe has no such part
OutputsRecipe read_outputs_recipe(const std::string& path);

/// The shape of the recipe's heads for a target, without the list of ranked tokens, which depends on
/// the texts.
HeadsConfig heads_config(const HeadsRecipe& recipe, const ModelConfig& target);

}  // namespace engine

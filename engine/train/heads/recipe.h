// How draft heads are trained, read from a JSON file (assets/recipes/medusa.json, chimera.json),
// and what any recipe says of the target's own texts that shall be learnt from.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/heads_files.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

struct HeadsRecipe {
  std::string name;                    // "demo-medusa"
  std::string target = "demo-target";  // NAME or directory
  OutputsPlan outputs;                 // what is learnt from
  int probe_texts = 200;               // of the split dev, for the accuracies

  HeadsKind kind = HeadsKind::Medusa;
  int heads = 4;
  double head_decay = 1;  // head k's loss counts this to the power of k
  int layers = 1;         // Medusa: residual layers
  // Chimera
  int gram = 3;
  bool residual = true;               // heads read the hidden state too
  bool finetune_first_layer = false;  // train an embedding of its own
  bool sees_committed_grams = true;   // else a chain sees the text's hidden states alone
  int hidden_dim = 0;                 // of the encoder; 0: the target's
  int attention_heads = 0;            // of the encoder; 0: the target's
  double feature_weight = 1;          // of the mean square between f and the hidden state there
  bool self_fed = false;              // chains of the heads' own guesses
  double init_deviation = 0.02;

  int batch_texts = 16;
  double peak_lr = 1e-3;
  double final_lr = 0.04;  // of the peak, where the cosine ends
  int warmup_steps = 40;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0;
  double clip = 1;
  double epochs = 0;   // times every text is met, where the cosine ends ...
  double minutes = 0;  // ... or, if epochs is 0, minutes of training
  double checkpoint_minutes = 3;
  int probe_steps = 50;            // between measures of accuracy in the log; 0: none
  double hidden_megabytes = 1024;  // that kept hidden states may take
  std::uint64_t seed = 1;
  std::string compute = "auto";
  int shards = 0;
};

/// @param kind  whose recipe it has to be
/// @param path  for messages
/// @throws Error(BadInput)  "path: field: found X, expected Y"
HeadsRecipe heads_recipe_from(const std::string& json, HeadsKind kind, const std::string& path);
HeadsRecipe read_heads_recipe(const std::string& path, HeadsKind kind);
/// The recipe as JSON, every field said; read back it is the same recipe.
std::string to_json(const HeadsRecipe& recipe);

/// The own texts that a recipe of whatever kind asks for, and of which target.
struct OutputsRecipe {
  std::string name;
  std::string target;
  OutputsPlan plan;
};
/// @throws Error(BadInput)  also if it asks for none
OutputsRecipe read_outputs_recipe(const std::string& path);

/// Heads of the recipe's shape for a target.
HeadsConfig heads_config(const HeadsRecipe& recipe, const ModelConfig& target);

}  // namespace engine

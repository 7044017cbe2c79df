// How a consistency model is made of a target, read from a JSON file (assets/recipes/cllm.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/train/cllm/consistency.h"

namespace engine {

struct CllmRecipe {
  std::string name;                    // "demo-cllm"
  std::string target = "demo-target";  // what it starts from: NAME or directory
  std::string mixture;                 // JSON object of parts, as TrainingStream reads it
  std::string replay_mixture;          // of the texts that are replayed; empty: `mixture`

  // Collecting.
  int block = 16;            // n: tokens refined together
  int prompts = 3000;        // texts of the mixture that are answered
  int max_new_tokens = 256;  // of an answer
  int lanes = 32;            // prompts in one forward
  bool drop_wrong = true;    // answers that their task's checker refuses
  int token_run = 10;        // the same token so often in a row is dropped; 0: never
  int sentence_run = 3;      // the same sentence
  bool augment = true;       // "right, wrong, right" patterns

  // The loss.
  ConsistencyLoss loss;
  double ar_weight = 1, consistency_weight = 1, replay_weight = 1;
  double final_consistency_weight = -1;  // where it moves to by the run's end; < 0: stays
  bool frozen_teacher = false;  // true: the target as it was; false: the model itself, held still
  int points = 8;               // of a text in one step; 0: answers are collected without them
  int fresh_points = 0;         // chains beside them that no trajectory has, drawn for the step
  int fresh_block = 0;          // tokens of such a chain; 0: as of a block
  int fresh_iterations = 0;     // by which a text's fresh chains are refined by the model, at most
  int batch_texts = 16;         // trajectories in one step
  int replay_texts = 16;        // texts of the replay mixture, with their own answers
  int context = 512;            // rows of one text with its chains; longer texts are left out

  // The run.
  double epochs = 0;   // times every trajectory is met, where the cosine ends ...
  double minutes = 0;  // ... or, if epochs is 0, minutes of training
  double peak_lr = 3e-4;
  double final_lr = 0.04;
  int warmup_steps = 20;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0;
  double clip = 1;
  double checkpoint_minutes = 3;
  double probe_minutes = 3;  // between measures of speed and accuracy; 0: none but first and last
  int probe_problems = 20;   // of each task
  int score_problems = 100;  // of each task, before and after
  std::uint64_t seed = 1;
  std::string compute = "auto";
  int shards = 0;
};

/// @param path  for messages
/// @throws Error(BadInput)  "path: field: found X, expected Y"
CllmRecipe cllm_recipe_from(const std::string& json, const std::string& path);
CllmRecipe read_cllm_recipe(const std::string& path);
/// The recipe as JSON, every field said; read back it is the same recipe.
std::string to_json(const CllmRecipe& recipe);
/// What decides the trajectories, and what decides the weights beside them and the run's length.
std::string collecting_part(const CllmRecipe& recipe);
std::string training_part(const CllmRecipe& recipe);

}  // namespace engine

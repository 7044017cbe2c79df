// The recipe of a consistency training, read from a JSON file (assets/recipes/cllm.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/train/cllm/consistency.h"

namespace engine {

/// How a consistency model is made from a target.
struct CllmRecipe {
  std::string name;                    // "demo-cllm"
  std::string target = "demo-target";  // the model to start from: NAME or directory
  std::string mixture;                 // JSON object of parts, as TrainingStream reads it
  std::string replay_mixture;          // of the replayed texts; empty: `mixture`

  // Collecting.
  int block = 16;            // n: tokens refined together
  int prompts = 3000;        // texts of the mixture to answer
  int max_new_tokens = 256;  // of an answer
  int lanes = 32;            // prompts in one forward
  bool drop_wrong = true;    // drop answers that their task's checker rejects
  int token_run = 10;        // drop answers with this many repeats of a token in a row; 0: never
  int sentence_run = 3;      // the same for a sentence
  bool augment = true;       // add points with the pattern "right, wrong, right"

  // The loss.
  ConsistencyLoss loss;
  double ar_weight = 1, consistency_weight = 1, replay_weight = 1;
  double final_consistency_weight =
      -1;                       // value at the end of the run, reached linearly; < 0: constant
  bool frozen_teacher = false;  // teacher: the original target, or (false) the current model
  int points = 8;        // points of a text in one step; 0: answers are collected without points
  int fresh_points = 0;  // fresh chains of a text in one step
  int fresh_block = 0;   // tokens of a fresh chain; 0: `block`
  int fresh_iterations = 0;     // maximum Jacobi iterations that refine fresh chains
  int batch_texts = 16;         // trajectories in one step
  int replay_texts = 16;        // texts of the replay mixture, with their own answers
  int context = 512;            // rows of one text with its chains; longer texts are skipped

  // The run.
  double epochs = 0;   // passes over all trajectories until the cosine ends ...
  double minutes = 0;  // ... or, if epochs is 0, minutes of training
  double peak_lr = 3e-4;
  double final_lr = 0.04;  // last learning rate, as a share of the peak
  int warmup_steps = 20;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0;
  double clip = 1;
  double checkpoint_minutes = 3;
  double probe_minutes =
      3;  // between measurements of speed and accuracy; 0: only the first and last
  int probe_problems = 20;   // of each task
  int score_problems = 100;  // of each task, before and after
  std::uint64_t seed = 1;
  std::string compute = "auto";
  int shards = 0;
};

/// Parses a recipe.
/// @param path  for messages
/// @throws Error(BadInput)  "path: field: found X, expected Y"
CllmRecipe cllm_recipe_from(const std::string& json, const std::string& path);
/// Reads and parses a file. @throws as cllm_recipe_from()
CllmRecipe read_cllm_recipe(const std::string& path);
/// The recipe as JSON with every field; parsing it gives the same recipe.
std::string to_json(const CllmRecipe& recipe);
/// The fields that decide the trajectories, as JSON.
std::string collecting_part(const CllmRecipe& recipe);
/// The fields that decide the training besides the trajectories and its length, as JSON.
std::string training_part(const CllmRecipe& recipe);

}  // namespace engine

// The recipe of a consistency training, read from a JSON file (assets/recipes/cllm.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/train/cllm/consistency.h"
#include "engine/train/lora/low_rank_settings.h"

namespace engine {

/// How a consistency model is made from a target.
struct CllmRecipe {
  std::string name;                    // "demo-cllm"
  std::string target = "demo-target";  // the model to start from: NAME or directory
  std::string mixture;                 // JSON object of parts, as TrainingStream reads it
  bool chat = false;                   // prompts are requests (mixture: as ChatRequests), rendered
                                       // by the target's chat template
  std::string replay_mixture;          // the replayed texts come from it; empty: `mixture`

  // Collecting.
  int block = 16;            // n: tokens refined together
  int prompts = 3000;        // texts of the mixture to answer
  int max_new_tokens = 256;  // maximum length of an answer
  int lanes = 32;            // prompts decoded in one forward pass
  bool drop_wrong = true;    // drop answers that their task's checker rejects
  int token_run = 10;        // drop answers with this many repeats of a token in a row; 0: never
  int sentence_run = 3;      // drop answers with this many repeats of a sentence in a row; 0: never
  bool augment = true;       // add points with the pattern "right, wrong, right"

  // The loss.
  ConsistencyLoss loss;
  double ar_weight = 1, consistency_weight = 1, replay_weight = 1;
  // consistency_weight changes linearly to this value until the run ends; below 0: it is constant
  double final_consistency_weight = -1;
  bool frozen_teacher = false;  // teacher: the original target, or (false) the current model
  int points = 8;        // points of each text in a step; 0: collects answers without trajectories
  int fresh_points = 0;  // fresh chains of each text in a step
  int fresh_block = 0;   // tokens of a fresh chain; 0: `block`
  int fresh_iterations = 0;  // maximum Jacobi iterations that refine fresh chains
  int batch_texts = 16;      // trajectories in one step
  int replay_texts = 16;     // texts of the replay mixture, with their own answers
  int context = 512;         // rows of one text with its chains; longer texts are skipped

  // The weights that are trained: low-rank updates, or all weights.
  LowRank lora;

  // The run.
  double epochs = 0;   // length of the run in passes over all trajectories
  double minutes = 0;  // length of the run if epochs is 0
  double peak_lr = 3e-4;
  double final_lr = 0.04;  // last learning rate, as a share of the peak
  int warmup_steps = 20;
  double beta1 = 0.9, beta2 = 0.95;
  double weight_decay = 0;
  double clip = 1;
  double checkpoint_minutes = 3;
  double probe_minutes =
      3;  // interval of measuring speed and accuracy; 0: measures only before and after the run
  int probe_problems = 20;   // problems of each task in such a measurement
  int score_problems = 100;  // problems of each task before and after the run
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
/// The fields that the collected trajectories depend on, as JSON.
std::string collecting_part(const CllmRecipe& recipe);
/// The fields that the updates depend on, except the length of the run, as JSON.
std::string training_part(const CllmRecipe& recipe);

}  // namespace engine

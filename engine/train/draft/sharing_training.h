// Parts of training a draft that shares its target's embedding: shape, output tokens, initial weights and result.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/opened_model.h"
#include "engine/train/run/recipe.h"

namespace engine {

/// The files of such a training.
struct SharingFiles {
  const std::string& recipe;     // for messages
  const std::string& target;     // path of the target; empty: it is not here
  const std::string& out;        // directory of the checkpoint
  const std::string& own_texts;  // the target's texts; empty: not written yet
};

/// Opens the target.
/// @throws Error(BadInput)  also if it is not here
ModelFiles open_target(const SharingFiles& files,
                       const TrainRecipe& recipe,
                       const FileLimits& limits);

/// Sets recipe.model to the target's shape with the recipe's number of layers, and recipe.output_tokens: to those of the
/// checkpoint in files.out, else to the most frequent ones of the texts; without both they stay unset.
/// @throws Error(BadInput)  if from_layers or the output tokens are not in the target
void complete_by_target(const SharingFiles& files, const ModelFiles& target, TrainRecipe& recipe);

/// The draft's initial weights, in the order of ParameterLayout: the target's layers recipe.from_layers, and its last norm.
std::vector<float> layers_of_target(const ModelFiles& target, const TrainRecipe& recipe);

}  // namespace engine

// The model card of a trained model, README.md: shape, training data and licences, and settings. An
// evaluation adds scores.
#pragma once

#include <string>
#include <vector>

#include "engine/data/mixture.h"
#include "engine/train/core/trainer.h"
#include "engine/train/run/recipe.h"

namespace engine {

/// Writes directory/README.md.
/// @param shares  the share of each part of its mixture
/// @param from    directory of the initial model, whose card the new card summarises; or empty
/// @param target  directory of the model that wrote the training texts, if the recipe has
///                own_outputs; empty: not available
/// @throws Error(Resources)  if it cannot be written
void write_model_card(const std::string& directory,
                      const TrainRecipe& recipe,
                      const TrainResult& result,
                      const std::vector<TrainingStream::Share>& shares,
                      const std::string& from,
                      const std::string& target);

/// The card's section on training data and licences.
/// @param mixture  JSON object of the parts of a TrainingStream or of ChatRequests
/// @param shares   the share of each part
/// @param sources  directories of the initial model and of the model that wrote the training texts,
///                 whose cards are included; empty: not available
std::string data_and_licences(const std::string& mixture,
                              const std::vector<TrainingStream::Share>& shares,
                              const std::vector<std::string>& sources);

/// Replaces the section "Scores" of directory/README.md by `markdown`, or adds it.
void write_scores(const std::string& directory, const std::string& markdown);

}  // namespace engine

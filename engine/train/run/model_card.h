// README.md of a trained model: what it is, what it read and under which licences, how it was
// trained, and (filled by evaluation) what it can do.
#pragma once

#include <string>
#include <vector>

#include "engine/data/mixture.h"
#include "engine/train/run/recipe.h"
#include "engine/train/core/trainer.h"

namespace engine {

/// Writes directory/README.md.
/// @param from    directory of the model the run started from, whose training is told too; or empty
/// @param target  directory of the model whose texts it learned from, where the recipe has
///                own_outputs; empty: it is not here
/// @throws Error(Resources)  if it cannot be written
void write_model_card(const std::string& directory,
                      const TrainRecipe& recipe,
                      const TrainResult& result,
                      const TrainingStream& stream,
                      const std::string& from,
                      const std::string& target);

/// The card's section on what was read and under which licences.
/// @param mixture  JSON object of parts, of which the stream is
/// @param sources  directories of the models that it started or learned from, whose cards say what
///                 those had read; an empty one is of a model that is not here
std::string data_and_licences(const std::string& mixture,
                              const TrainingStream& stream,
                              const std::vector<std::string>& sources);

/// Replaces the section "Scores" of directory/README.md by `markdown`, or adds it.
void write_scores(const std::string& directory, const std::string& markdown);

}  // namespace engine

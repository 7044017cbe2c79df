// The model card of trained heads, README.md: their target, training data, settings and accuracies.
#pragma once

#include <string>

#include "engine/train/heads/trainer.h"

namespace engine {

/// A markdown table "| head | top-1 | .. | top-5 |" with a line for each head, in percent.
std::string accuracy_table(const HeadsRanks& ranks);

/// Writes directory/README.md.
/// @param target  directory of the heads' target; the new card summarises the target's card
/// @param data    folder of the open texts, if the mixture names them
/// @throws Error(Resources)  if it cannot be written
void write_heads_card(const std::string& directory,
                      const HeadsTraining& training,
                      const std::string& target,
                      const std::string& data);

}  // namespace engine

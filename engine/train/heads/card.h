// README.md of trained heads: what they are for, what they learned from, how, and how often they
// are right.
#pragma once

#include <string>

#include "engine/train/heads/train.h"

namespace engine {

/// "| head | top-1 | .. | top-5 |" and a line a head, in percent.
std::string accuracy_table(const HeadsRanks& ranks);

/// Writes directory/README.md.
/// @param target  directory of the model they are for, whose own training is told too
/// @param data    folder of the open texts, where the mixture names them
/// @throws Error(Resources)  if it cannot be written
void write_heads_card(const std::string& directory,
                      const HeadsTraining& training,
                      const std::string& target,
                      const std::string& data);

}  // namespace engine

// Which texts a target shall write for others to learn from.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/record.h"

namespace engine {

struct OutputsPlan {
  std::string mixture;      // JSON object of parts, as TrainingStream reads it
  std::int64_t count = 0;   // texts 0 to count - 1 of the mixture; those without a prompt drop out
  int max_tokens = 192;     // written behind a prompt
  std::uint64_t seed = 1;   // of the mixture
  bool check = false;       // ask the tasks' checkers
  bool drop_wrong = false;  // leave out those that a checker rejects, when they are read
  int lanes = 64;           // texts in one forward; the tokens do not depend on it
  Split split = Split::Train;
};

}  // namespace engine

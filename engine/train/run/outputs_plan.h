// The plan of the texts that a target writes as training data.
#pragma once

#include <cstdint>
#include <string>

#include "engine/data/record.h"

namespace engine {

/// Prompts and settings for these texts.
struct OutputsPlan {
  std::string mixture;  // JSON object of parts, as TrainingStream reads it; chat: as ChatRequests
  std::int64_t count =
      0;                 // texts 0 to count - 1 of the mixture; those without a prompt are skipped
  int max_tokens = 192;  // maximum tokens written after a prompt
  std::uint64_t seed = 1;     // of the mixture
  bool check = false;         // the tasks' checkers check the texts
  bool drop_wrong = false;    // texts that a checker rejected are skipped when the file is read
  bool chat = false;          // prompts are requests, rendered by the target's chat template
  int max_prompt_tokens = 0;  // longer prompts are skipped; 0: those that exceed the context
  int lanes = 64;             // texts in one forward pass; does not change the tokens
  Split split = Split::Train;
};

}  // namespace engine

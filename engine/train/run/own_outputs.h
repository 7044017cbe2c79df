// Texts that a target writes greedily after the prompts of a mixture. They train draft heads and draft
// models, which predict the target's tokens, correct or not. Stored as JSON lines, one per finished
// text, so a killed process loses only unfinished texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// A text written by a target.
struct OwnOutput {
  std::int64_t index = 0;       // of the text in the mixture that the prompt is from
  std::string part;             // "arith", .., or the real set's name
  std::vector<TokenId> tokens;  // the prompt with its begin token, then the tokens written
  int n_prompt = 0;             // of these
  bool ended = false;           // true: the last token is an end token
  std::optional<bool> right;    // by the task's checker; none: not checked
};

/// A target, with the name and hash that identify it in files.
struct OwnTarget {
  Model& model;
  std::string name;
  std::string weights_hash;
};

/// Progress of writing texts.
struct OutputsProgress {
  std::int64_t done = 0, all = 0;  // texts
  std::int64_t tokens = 0;         // written by this call
  double tokens_per_second = 0;
  double seconds = 0, seconds_left = 0;
};

/// Writes the texts that the file does not have yet. Creates the file if it does not exist.
/// @param data   folder of the open texts, for mixtures that name them
/// @param go_on  called after every step; returns false to stop: finished texts are saved
/// @return  true if the file has all texts
/// @throws Error(BadInput)   if the file is of another target or plan, or damaged before its end
/// @throws Error(Resources)  if it cannot be written
bool write_own_outputs(const OwnTarget& target,
                       const OutputsPlan& plan,
                       const std::string& path,
                       const std::string& data,
                       const std::function<bool(const OutputsProgress&)>& go_on = {});

/// The texts of a file, ordered by index, without rejected ones if plan.drop_wrong.
/// @param target  the target that must have written them; null: any
/// @throws Error(BadInput)  names file and line; also if another target wrote them
std::vector<OwnOutput> read_own_outputs(const std::string& path,
                                        const OutputsPlan& plan,
                                        const OwnTarget* target);

}  // namespace engine

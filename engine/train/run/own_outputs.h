// What a target itself writes, greedily, behind the prompts of a mixture: draft heads and draft
// models learn from it, for they are asked what the target will say and not what is right. Kept as
// JSON lines, one a text as it ends, so that a process that is killed at any byte has lost no more
// than the texts under way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

struct OwnOutput {
  std::int64_t index = 0;       // of the mixture's text whose prompt it is
  std::string part;             // "arith", .., or the real set's name
  std::vector<TokenId> tokens;  // prompt, with its begin token, and what was written
  int n_prompt = 0;             // of these
  bool ended = false;           // with an end token, the last one
  std::optional<bool> right;    // by its task's checker; none: not asked, or it cannot say
};

/// A target with the name and the hash by which files about it are recognised.
struct OwnTarget {
  Model& model;
  std::string name;
  std::string weights_hash;
};

struct OutputsProgress {
  std::int64_t done = 0, all = 0;  // texts
  std::int64_t tokens = 0;         // written by this call
  double tokens_per_second = 0;
  double seconds = 0, seconds_left = 0;
};

/// Writes texts that `path` does not have yet; a file that is not there is begun.
/// @param data  folder of the open texts, for mixtures that name them
/// @param go_on told after every step; false: what has ended is saved, and the rest left
/// @return  whether all texts are there
/// @throws Error(BadInput)   if the file is of another target or plan, or damaged before its end
/// @throws Error(Resources)  if it cannot be written
bool write_own_outputs(const OwnTarget& target,
                       const OutputsPlan& plan,
                       const std::string& path,
                       const std::string& data,
                       const std::function<bool(const OutputsProgress&)>& go_on = {});

/// The texts of a file by their index; wrong ones left out where the plan says so.
/// @param target  null: of whichever
/// @throws Error(BadInput)  naming file and line; or if another target wrote them
std::vector<OwnOutput> read_own_outputs(const std::string& path,
                                        const OutputsPlan& plan,
                                        const OwnTarget* target);

}  // namespace engine

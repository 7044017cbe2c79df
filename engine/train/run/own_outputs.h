// Texts that a target writes by greedy decoding after the prompts of a mixture. Draft heads and
// draft models are trained on them, because they predict the target's tokens, correct or not. Every
// finished text is appended to a file as a JSON line, so a killed process loses only unfinished
// texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/mixture.h"
#include "engine/model/model.h"
#include "engine/train/run/outputs_plan.h"

namespace engine {

/// A text written by a target.
struct OwnOutput {
  std::int64_t index = 0;       // index in the mixture of the text that has this prompt
  std::string part;             // task of the text: "arith", .., or the name of an open set
  std::vector<TokenId> tokens;  // the prompt with its begin token, then the tokens written
  int n_prompt = 0;             // number of these tokens that are the prompt
  bool ended = false;           // true: the last token is an end token
  std::optional<bool> right;    // the verdict of the task's checker; nullopt: not checked
};

/// The target that writes texts, with the name and hash that identify it in files.
struct NamedTarget {
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

/// Writes the texts of the plan's prompts that the file does not have yet. Creates the file if it
/// does not exist. Texts of later prompts, from a plan with a larger count, stay in the file.
/// If the plan has `chat`, it skips requests that overlap an evaluation question.
/// @param data   folder of the open texts, for mixtures that name them
/// @param keep_going  called after every step; returns false to stop: finished texts are saved
/// @param notice      receives a sentence if the file already has all texts; if the plan has
///                    `chat`, also the number of requests and of those skipped
/// @return  true if the file has all texts
/// @throws Error(BadInput)   if the file is from another target or plan, or has a damaged line that
///                           is not the last; also if the plan has `chat` and the target has no
///                           chat template
/// @throws Error(Resources)  if it cannot be written
bool write_own_outputs(const NamedTarget& target,
                       const OutputsPlan& plan,
                       const std::string& path,
                       const std::string& data,
                       const std::function<bool(const OutputsProgress&)>& keep_going = {},
                       const std::function<void(const std::string&)>& notice = {});

/// The share of each part in a plan's prompts. @param data  as write_own_outputs()
std::vector<TrainingStream::Share> shares_of_prompts(const OutputsPlan& plan,
                                                     const std::string& data);

/// Reads the texts of a file, ordered by index; without the rejected texts if plan.drop_wrong.
/// @param target  the target that must have written them; null: any
/// @throws Error(BadInput)  names file and line; also if another target wrote them
std::vector<OwnOutput> read_own_outputs(const std::string& path,
                                        const OutputsPlan& plan,
                                        const NamedTarget* target);

}  // namespace engine

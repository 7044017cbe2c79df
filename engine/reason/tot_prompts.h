// The prompt templates of a tree of thoughts, read from a file with one line for each kind of completion.
// Another model can have other prompts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

enum class ScorePlace : std::uint8_t;  // engine/data/arith/answers.h

/// The values that replace {name} in a template.
using Slots = std::map<std::string, std::string>;

/// A prompt template.
struct TotPrompt {
  /// The kind of completion.
  enum class Use {
    Thought,  ///< thought generator: writes a part of every new thought
    Value,    ///< state evaluator: scores a thought
    Kept,     ///< writes a part of the selected thoughts: the state they lead to
    Answer,   ///< writes the answer after the best chain
  };
  Use use = Use::Thought;
  std::string part;  // Thought and Kept: the name of the part, a slot of the prompts after this one
  int depth = 0;     // level of the thoughts, from 1; 0: all levels
  std::string text;  // the template
  std::vector<std::string> stop_texts;
  int max_tokens = 100;
  ScorePlace score = {};  // Value: where the completion states the score, by default first
};

/// Reads templates.
/// @param path  JSON lines {"use": thought|value|kept|answer, "part", "depth", "prompt", "stop",
///              "max_tokens", "score": first|last}. depth, stop and score (of a value) are optional;
///              part is required for thought and kept only
/// @throws Error(BadInput)  "file:line: .." for a malformed line, or if there is no line for thoughts
std::vector<TotPrompt> read_tot_prompts(const std::string& path);

/// The prompts of one kind for thoughts of a level, in the order of the file.
std::vector<const TotPrompt*> prompts_for(std::span<const TotPrompt> prompts,
                                          TotPrompt::Use use,
                                          int depth);

/// Replaces the slots of a template; "{Action}" gives the slot `action` with a capital first letter.
/// Braces around anything but letters and "_" stay.
/// @throws Error(BadInput)  naming the unknown slot and the known ones
std::string fill_template(std::string_view text, const Slots& slots);

}  // namespace engine

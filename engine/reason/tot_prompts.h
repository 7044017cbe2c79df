// Prompts of a tree of thoughts: files of templates, one line a kind of completion, so that another
// model can be asked in words of its own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// What stands for {name} in a template.
using Slots = std::map<std::string, std::string>;

struct TotPrompt {
  enum class Use {
    Thought,  ///< writes a part of every new thought
    Value,    ///< scores a thought
    Kept,     ///< writes a part of the thoughts that were kept: where they lead
    Answer,   ///< writes the answer behind the chain that was found
  };
  Use use = Use::Thought;
  std::string part;  // what it writes, of Thought and Kept: a slot of the prompts behind it
  int depth = 0;     // of the thoughts it is for, from 1; 0: of all
  std::string text;  // with slots
  std::vector<std::string> stop_texts;
  int max_tokens = 100;
};

/// @param path  JSON lines {"use": thought|value|kept|answer, "part", "depth", "prompt", "stop",
///              "max_tokens"}; depth and stop may be missing, part where nothing is written
/// @throws Error(BadInput)  "file:line: .." for a malformed line, or if no thought is written
std::vector<TotPrompt> read_tot_prompts(const std::string& path);

/// A template with its slots filled; "{Action}" is the slot action with its first letter large.
/// Braces around anything but a letter's word stay.
/// @throws Error(BadInput)  naming a slot that is not there, and those that are
std::string filled(std::string_view text, const Slots& slots);

}  // namespace engine

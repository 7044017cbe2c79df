// Reads prompts from JSON Lines: {"id": ..., "prompt": ..., "seed": optional, "task": optional}, or
// with "messages": [{"role": ..., "content": ...}, ...] in place of the prompt. Other fields are
// ignored, so the output of `data generate` can be used as a prompt file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/input_file.h"
#include "engine/base/limits.h"
#include "engine/chat/conversation.h"

namespace app {

/// A prompt of a file or of the command line.
struct Prompt {
  std::string id;
  std::string text;   // of messages: the content of the last one
  std::string place;  // "file:line"; empty if not from a file
  std::optional<std::uint64_t> seed;
  // the member "task" of the line, else the part of the id before a "/"; empty: none
  std::string task = {};
  std::vector<engine::ChatMessage> messages = {};  // a conversation; empty: `text` is the prompt
};

/// Reads the prompts of a file.
/// @param path    a file or, if `pipes` allows, a pipe or "-" for standard input
/// @param limits  prompt_bytes applies to a line, json_depth to its JSON
/// @throws Error(BadInput)  "file:line: ..." for an invalid line, or if there is none; also as
///                          engine::read_text_input()
std::vector<Prompt> read_prompts(const std::string& path,
                                 const engine::FileLimits& limits = {},
                                 engine::Pipes pipes = engine::Pipes::Read);

}  // namespace app

// The input and the output of a chat template: messages, other variables, and the rendered parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/json.h"

namespace engine {

/// A message of a conversation.
struct ChatMessage {
  std::string role;  // "system", "user", "assistant", ...
  std::string content;
  bool operator==(const ChatMessage&) const = default;
};

/// Variables of a template other than the messages.
struct ChatSettings {
  std::string bos, eos;               // texts of the model's begin and end tokens, or empty
  bool add_generation_prompt = true;  // end with the beginning of the assistant's answer
  std::vector<std::pair<std::string, Json>> extra = {};  // further variables by name
  std::optional<std::int64_t> now = {};  // for strftime_now, seconds since 1970; unset: the clock
};

/// A stretch of a rendered text.
struct ChatPart {
  std::string text;
  bool from_message = false;  // the content of a message; else written by the template
  bool operator==(const ChatPart&) const = default;
};

}  // namespace engine

// Chat templates: the Jinja text in a model's files that makes a prompt of messages, rendered as
// transformers renders it (jinja2 with trim_blocks and lstrip_blocks, raise_exception, tojson
// without HTML escapes, strftime_now).
//   engine    common/jinja of llama.cpp (cmake/jinja.cmake); jinja_strict.h has what differs
//   untrusted a template runs in a forked child without files, with limits of time, memory and
//             output; a fault in it ends the child only
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
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

/// A template and the place where it was found.
struct ChatTemplate {
  std::string text;
  std::string place;  // for messages: "DIR/chat_template.jinja"
};

/// What a template sees beside the messages.
struct ChatSettings {
  std::string bos, eos;               // texts of the model's begin and end tokens; may be empty
  bool add_generation_prompt = true;  // end with the beginning of the assistant's answer
  std::vector<std::pair<std::string, Json>> extra = {};  // further variables by name
  std::optional<std::int64_t> now = {};  // for strftime_now, seconds since 1970; unset: the clock
};

/// Limits of one rendering.
struct ChatLimits {
  std::chrono::milliseconds time{10'000};
  std::int64_t memory_bytes = 1 << 30;   // beyond what the program uses itself
  std::int64_t output_bytes = 64 << 20;  // of the rendered text
};

/// A stretch of a rendered text.
struct ChatPart {
  std::string text;
  bool from_message = false;  // the content of a message; else written by the template
  bool operator==(const ChatPart&) const = default;
};

/// The text of all parts.
std::string text_of(std::span<const ChatPart> parts);

/// Renders a conversation.
/// @throws Error(BadInput)   the template is not valid, refuses the messages, or exceeds a limit;
///                           names the template's place and, if known, its line
/// @throws Error(Resources)  no process can be started
std::vector<ChatPart> render_chat(const ChatTemplate& chat_template,
                                  std::span<const ChatMessage> messages,
                                  const ChatSettings& settings,
                                  const ChatLimits& limits = {});

}  // namespace engine

// Chat templates: the Jinja text in a model's files that makes a prompt of messages, rendered as
// transformers renders it (jinja2 with trim_blocks and lstrip_blocks, raise_exception, tojson
// without HTML escapes, strftime_now).
//   engine    common/jinja of llama.cpp (cmake/jinja.cmake); jinja_strict.h has what differs
//   untrusted a template runs in a forked child without files, with limits of time, memory and
//             output; a fault in it ends the child only
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/chat/conversation.h"

namespace engine {

/// A template and the place where it was found.
struct ChatTemplate {
  std::string text;
  std::string place;  // for error messages: "DIR/chat_template.jinja"
};

/// Limits of one rendering.
struct ChatLimits {
  std::chrono::milliseconds time{10'000};
  std::int64_t memory_bytes = 1 << 30;   // in addition to what the program itself uses
  std::int64_t output_bytes = 64 << 20;  // of the rendered text
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

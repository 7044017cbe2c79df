// Renders a chat template in this process, without limits. Only the child process of render_chat()
// and the tests of the template language use it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/chat/conversation.h"

namespace engine {

/// A rendering or the reason why there is none.
struct JinjaResult {
  std::vector<ChatPart> parts;
  std::string error;     // one line; empty: none
  int line = 0;          // of the template, from 1; 0: unknown
  bool refused = false;  // the template itself refuses the messages (raise_exception)
};

/// Renders a conversation. Throws std::bad_alloc if the process reaches its memory limit.
JinjaResult render_jinja(const std::string& text,
                         std::span<const ChatMessage> messages,
                         const ChatSettings& settings);

}  // namespace engine

// Conversations: reading them from JSON ([{"role": "user", "content": "Hello"}, ...]), and their
// system message.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/chat/conversation.h"

namespace engine {

/// Reads the messages of a JSON array, which must not be empty. A role consists of letters, digits,
/// - and _, because templates build special tokens from it. Other members of a message are ignored.
/// @param place  for messages: "file:line"
/// @throws Error(BadInput)  "place: messages.0.content: found X, expected Y"
std::vector<ChatMessage> messages_from(const Json& list, const std::string& place);

/// Inserts a system message before messages that do not begin with one. Does nothing if `system` is
/// empty.
void add_system_message(std::vector<ChatMessage>& messages, const std::string& system);
/// The content of the system message at the beginning; empty if there is none.
std::string system_message_of(const std::vector<ChatMessage>& messages);

}  // namespace engine

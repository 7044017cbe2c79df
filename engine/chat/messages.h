// Conversations: reading them from JSON ([{"role": "user", "content": "Hello"}, ...]), and their
// system message.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/chat/conversation.h"

namespace engine {

/// The messages of a JSON array; at least one. A role is a name of letters, digits, - and _, because
/// templates make special tokens of it; other members of a message are ignored.
/// @param place  for messages: "file:line"
/// @throws Error(BadInput)  "place: messages.0.content: found X, expected Y"
std::vector<ChatMessage> messages_from(const Json& list, const std::string& place);

/// Puts a system message before messages that do not begin with one; nothing if `system` is empty.
void add_system_message(std::vector<ChatMessage>& messages, const std::string& system);
/// The system message at the beginning; empty: there is none.
std::string system_message_of(const std::vector<ChatMessage>& messages);

}  // namespace engine

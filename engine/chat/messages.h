// Conversations in JSON: [{"role": "user", "content": "Hello"}, ...].
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

}  // namespace engine

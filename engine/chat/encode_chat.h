// Encodes a rendered conversation. A special token that the template writes becomes its id. The
// name of a special token inside a message is encoded as plain text; otherwise a message could end
// its turn or begin another one. No begin token is added beyond those that the template writes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/chat/conversation.h"

namespace engine {

class Tokenizer;

/// Returns the token ids of a rendering.
/// @throws Error(BadInput)  as Tokenizer::encode()
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatPart> parts);

/// True if a text contains the name of a special token.
bool names_special_token(const Tokenizer& tokenizer, std::string_view text);

/// The texts of the tokenizer's begin and end tokens, for a template.
ChatSettings chat_settings_of(const Tokenizer& tokenizer);

}  // namespace engine

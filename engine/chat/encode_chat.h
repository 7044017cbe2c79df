// Tokens of a rendered conversation. Special tokens that the template writes become their ids;
// names of special tokens in the content of a message are text, so that no message can end its
// turn or begin another one. No begin token is added to those that the template writes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/chat/conversation.h"

namespace engine {

class Tokenizer;

/// The ids of a rendering.
/// @throws Error(BadInput)  as Tokenizer::encode()
std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatPart> parts);

/// True if a text names a special token.
bool names_special_token(const Tokenizer& tokenizer, std::string_view text);

/// The texts of the tokenizer's begin and end tokens, for a template.
ChatSettings chat_settings_of(const Tokenizer& tokenizer);

}  // namespace engine

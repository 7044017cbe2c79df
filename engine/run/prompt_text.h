// The prompt of a run as a person gives it: a text or a conversation, with or without the model's
// chat template.
#pragma once

#include <string>
#include <vector>

#include "engine/base/types.h"
#include "engine/chat/conversation.h"
#include "engine/event/chat_mode.h"

namespace engine {

class Model;
struct RunRequest;

/// A prompt.
struct PromptText {
  std::string text;                        // or `messages`
  std::vector<ChatMessage> messages = {};  // a conversation; empty: `text` is the prompt
  ChatMode chat = ChatMode::Raw;
  std::string system = {};  // the system message of a conversation that has none; empty: none
  bool symbols = true;      // outside of messages, names of special tokens become their ids
};

/// A prompt that a model can read.
struct PromptTokens {
  std::vector<TokenId> tokens;
  std::string rendered;  // what the chat template made of the prompt; empty: it was read as it is
  std::string system;    // the system message in `rendered`; empty: none
};

/// Renders and tokenizes a prompt.
/// @throws Error(Usage)     a conversation, `system` or ChatMode::Chat without a template to render
///                          it, or without a tokenizer
/// @throws Error(BadInput)  as render_chat() and tokenize_prompt()
PromptTokens prompt_tokens_of(const Model& model, const PromptText& prompt);
/// Gives a run the prompt's tokens, rendered text and system message.
void set_prompt(RunRequest& run, PromptTokens prompt);

}  // namespace engine

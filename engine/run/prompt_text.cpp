#include "engine/run/prompt_text.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/chat/chat_template.h"
#include "engine/chat/encode_chat.h"
#include "engine/chat/messages.h"
#include "engine/model/model.h"
#include "engine/run/run.h"

namespace engine {
namespace {

/// Why the prompt cannot go through the model's template; empty: it can.
std::string why_no_chat(const Model& model, const PromptText& prompt) {
  if (prompt.chat == ChatMode::Raw) return "--raw takes prompts as they are";
  if (!model.tokenizer()) return model.name() + " has no tokenizer";
  if (model.chat_template().text.empty()) return model.name() + " has no chat template";
  const bool is_open = prompt.chat == ChatMode::Auto && prompt.messages.empty() && prompt.symbols;
  if (is_open && names_special_token(*model.tokenizer(), prompt.text))
    return "the prompt names special tokens, so it is taken as it is; --chat makes a message of it";
  return {};
}

/// Refuses what only a template can make use of.
void check_raw(const PromptText& prompt, const std::string& why) {
  const auto refuse = [&](const char* what) {
    throw Error(ErrorCode::Usage, fmt::format("{}: not possible: {}", what, why));
  };
  if (!prompt.messages.empty()) refuse("a prompt of messages");
  if (prompt.chat == ChatMode::Chat) refuse("--chat");
  if (!prompt.system.empty()) refuse("--system");
}

std::vector<ChatMessage> conversation_of(const PromptText& prompt) {
  std::vector<ChatMessage> messages = prompt.messages;
  if (messages.empty()) messages.push_back({"user", prompt.text});
  add_system_message(messages, prompt.system);
  return messages;
}

}  // namespace

PromptTokens prompt_tokens_of(const Model& model, const PromptText& prompt) {
  if (const std::string why = why_no_chat(model, prompt); !why.empty()) {
    check_raw(prompt, why);
    return {tokenize_prompt(model, prompt.text, prompt.symbols), {}, {}};
  }
  const std::vector<ChatMessage> messages = conversation_of(prompt);
  const std::vector<ChatPart> parts =
      render_chat(model.chat_template(), messages, chat_settings_of(*model.tokenizer()));
  PromptTokens read = {encode_chat(*model.tokenizer(), parts), text_of(parts),
                       system_message_of(messages)};
  check_prompt_length(model, read.tokens.size());
  return read;
}

void set_prompt(RunRequest& run, PromptTokens prompt) {
  run.prompt_tokens = std::move(prompt.tokens);
  run.rendered_prompt = std::move(prompt.rendered);
  run.system = std::move(prompt.system);
}

}  // namespace engine

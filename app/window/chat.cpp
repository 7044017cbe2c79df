#include "app/window/chat.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/chat/chat_template.h"
#include "engine/chat/encode_chat.h"
#include "engine/chat/messages.h"
#include "engine/checkpoint/model_files.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/error.h"
#include "ui/shell/catalog.h"

namespace app {
namespace {

/// The text of the ids, with special tokens apart.
std::vector<ui::ChatStretch> stretches_of(const engine::Tokenizer& tokenizer,
                                          const std::vector<engine::TokenId>& ids) {
  std::vector<ui::ChatStretch> stretches;
  engine::TextState state;
  for (const engine::TokenId id : ids) {
    const bool special = tokenizer.is_special(id);
    const std::string text = special ? tokenizer.piece(id) : tokenizer.extend(state, id);
    if (special || stretches.empty() || stretches.back().special)
      stretches.push_back({"", special});
    stretches.back().text += engine::printable(text, engine::LineBreaks::Kept);
  }
  return stretches;
}

ui::ChatPreview preview_of(const engine::ChatTemplate& chat_template,
                           const engine::Tokenizer& tokenizer,
                           const std::string& prompt,
                           const std::string& system,
                           bool always) {
  constexpr std::chrono::milliseconds kPatience{1000};  // the window waits for it
  if (!always && engine::names_special_token(tokenizer, prompt))
    return {.stretches = {},
            .note = std::string("The prompt names special tokens, so it is read as it is") +
                    (system.empty() ? "." : ", which is not possible with a system message.")};
  std::vector<engine::ChatMessage> messages = {{"user", prompt}};
  engine::add_system_message(messages, system);
  try {
    const auto parts = engine::render_chat(
        chat_template, messages, engine::chat_settings_of(tokenizer), {.time = kPatience});
    return {.stretches = stretches_of(tokenizer, engine::encode_chat(tokenizer, parts)),
            .note = ""};
  } catch (const kernels::Error& error) {
    return {.stretches = {}, .note = error.what()};
  }
}

}  // namespace

std::function<ui::ChatPreview(const std::string&, const std::string&, bool)> chat_preview(
    const engine::ModelFiles& files) {
  if (files.chat_template.empty() || !files.tokenizer) return {};
  return [chat_template = engine::ChatTemplate{files.chat_template, files.path},
          tokenizer = files.tokenizer](const std::string& prompt, const std::string& system,
                                       bool always) {
    return preview_of(chat_template, *tokenizer, prompt, system, always);
  };
}

}  // namespace app

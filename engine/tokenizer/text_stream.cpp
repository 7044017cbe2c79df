#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  TextState state;
  std::string text;
  for (const TokenId id : ids) text += extend(state, id);
  return text + take_whole_characters(state.open_bytes, true);
}

void check_length(std::string_view text, const FileLimits& limits) {
  if (static_cast<std::int64_t>(text.size()) <= limits.prompt_bytes) return;
  throw Error(ErrorCode::BadInput, fmt::format("prompt: found {} bytes, expected at most {}",
                                               text.size(), limits.prompt_bytes));
}

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const TokenId> prompt)
    : tokenizer_(&tokenizer) {
  for (const TokenId id : prompt) tokenizer.extend(state_, id);
  n_prompt_bytes_ = state_.open_bytes.size();
}

std::string TextStream::push(std::span<const TokenId> ids) {
  std::string out;
  for (const TokenId id : ids) out += without_prompt(tokenizer_->extend(state_, id));
  return out;
}

std::string TextStream::finish() {
  return without_prompt(take_whole_characters(state_.open_bytes, true));
}

// Removes the U+FFFD that belong to the prompt. If the prompt ends with an incomplete character,
// either the tokens complete it, or each of its bytes becomes a U+FFFD. A mixture is impossible,
// because only the first byte can begin a character.
std::string TextStream::without_prompt(std::string text) {
  if (n_prompt_bytes_ == 0 || text.empty()) return text;
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string lost;
  for (; n_prompt_bytes_ > 0; n_prompt_bytes_--) lost += kReplacement;
  if (text.starts_with(lost)) text.erase(0, lost.size());
  return text;
}

std::string continuation_text(const Tokenizer& tokenizer,
                              std::span<const TokenId> prompt,
                              std::span<const TokenId> tokens) {
  TextStream stream(tokenizer, prompt);
  std::string text = stream.push(tokens);
  return text + stream.finish();
}

}  // namespace engine

#include "engine/decode/guess/earlier_texts.h"

#include <algorithm>

namespace engine {
namespace {

/// Tokens of the prompt that are kept before a generated text: the beginning of an answer is found
/// by the end of its question.
constexpr std::size_t kLead = 8;
/// Longer strings of the file are not matched. Bounds the time of an append if one token repeats.
constexpr std::size_t kPiece = 4096;

}  // namespace

PoolFile::PoolFile(std::string file_name, std::span<const TokenId> tokens)
    : name(std::move(file_name)) {
  for (std::size_t i = 0; i < tokens.size(); i++) {
    if (i % kPiece == 0) index.begin_text();
    index.append(tokens[i]);
  }
}

void EarlierTexts::index(Text& text) {
  text.first_index = runs_.n_tokens();
  runs_.begin_text();
  for (const TokenId token : text.tokens) runs_.append(token);
}

void EarlierTexts::add(RunId run,
                       std::span<const TokenId> sequence,
                       std::size_t n_prompt,
                       int max_tokens) {
  ensure(n_prompt <= sequence.size(), "a prompt must not be longer than its sequence");
  if (n_prompt == sequence.size()) return;
  const std::size_t first = n_prompt - std::min(n_prompt, kLead);
  const auto tokens = sequence.subspan(first);
  texts_.push_back(
      {.run = run, .first_pos = static_cast<int>(first), .tokens = {tokens.begin(), tokens.end()}});
  index(texts_.back());
  if (runs_.n_tokens() > max_tokens) drop_oldest(max_tokens / 4 * 3);
}

void EarlierTexts::drop_oldest(int max_tokens) {
  std::int64_t n = runs_.n_tokens();
  while (n > max_tokens && !texts_.empty()) {
    n -= static_cast<std::int64_t>(texts_.front().tokens.size());
    texts_.pop_front();
  }
  runs_ = SuffixAutomaton();
  for (Text& text : texts_) index(text);
}

GuessSource EarlierTexts::source_in_runs(int index) const {
  const auto after = std::ranges::upper_bound(texts_, index, {}, &Text::first_index);
  ensure(index >= 0 && after != texts_.begin(), "the token is not in the texts of runs");
  const Text& text = *std::prev(after);
  return {.kind = GuessSource::Kind::Earlier,
          .run = text.run,
          .pos = text.first_pos + index - text.first_index};
}

}  // namespace engine

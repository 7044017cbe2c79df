#include "engine/tokenizer/bpe/pre_tokenizer.h"

#include <algorithm>

#include "engine/tokenizer/bpe/byte_symbols.h"

namespace engine {
namespace {

using Place = PreTokenizer::Place;

/// Replaces each word by the text that `write` appends for it to one shared buffer.
/// @param write  (std::string& out, word, whether it is the first one)
template <typename Write>
void rewrite(Words& words, const Write& write) {
  std::string& out = words.buffers.emplace_back();
  std::vector<std::size_t> ends;
  ends.reserve(words.words.size());
  for (const std::string_view word : words.words) {
    write(out, word, ends.empty());
    ends.push_back(out.size());
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); i++) {
    words.words[i] = std::string_view(out).substr(begin, ends[i] - begin);
    begin = ends[i];
  }
}

void apply_step(const SplitStep& step, Place, Words& words) {
  std::vector<std::string_view> pieces;
  pieces.reserve(2 * words.words.size());
  for (const std::string_view word : words.words)
    step.pattern.split(word, step.behaviour, step.inverts, pieces);
  words.words = std::move(pieces);
}

void apply_step(const PrefixSpaceStep&, Place place, Words& words) {
  rewrite(words, [&](std::string& out, std::string_view word, bool is_first) {
    const bool continues = is_first && place == Place::AfterText;
    if (!continues && !word.starts_with(' ')) out += ' ';
    out += word;
  });
}

void apply_step(const ByteLevelStep&, Place, Words& words) {
  rewrite(words,
          [](std::string& out, std::string_view word, bool) { append_byte_symbols(out, word); });
}

void apply_step(const MetaspaceStep& step, Place place, Words& words) {
  using Prepend = MetaspaceStep::Prepend;
  rewrite(words, [&](std::string& out, std::string_view word, bool is_first) {
    const bool continues = is_first && place == Place::AfterText;
    const bool is_chosen = step.prepend == Prepend::Always ||
                           (step.prepend == Prepend::First && is_first && place == Place::Start);
    const bool has_it = word.starts_with(' ') || word.starts_with(step.replacement);
    if (is_chosen && !continues && !has_it) out += step.replacement;
    for (const char c : word) {
      if (c == ' ') {
        out += step.replacement;
      } else {
        out += c;
      }
    }
  });
}

}  // namespace

bool PreTokenizer::is_byte_level() const {
  return std::ranges::any_of(
      steps_, [](const Step& step) { return std::holds_alternative<ByteLevelStep>(step); });
}

Words PreTokenizer::apply(std::string_view text, Place place) const {
  Words words;
  if (!text.empty()) words.words.push_back(text);
  for (const Step& step : steps_)
    std::visit([&](const auto& one) { apply_step(one, place, words); }, step);
  return words;
}

}  // namespace engine

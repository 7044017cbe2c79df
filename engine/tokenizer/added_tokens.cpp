#include "engine/tokenizer/added_tokens.h"

#include <algorithm>

#include "engine/base/utf8.h"
#include "engine/tokenizer/unicode_classes.h"

namespace engine {
namespace {

/// Offset of the last character of a text that is not empty.
std::size_t last_character(std::string_view text) {
  std::size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) i--;
  return i;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(utf8_at(text, last_character(text)).code_point);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(utf8_at(text, 0).code_point);
}

/// Number of bytes of white space at the start of `text`.
std::size_t leading_space(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const Utf8Char c = utf8_at(text, i);
    if (c.state != Utf8Char::Valid || !is_white_space(c.code_point)) break;
    i += static_cast<std::size_t>(c.length);
  }
  return i;
}

/// Offset at which the trailing white space of `text` begins.
std::size_t trailing_space_begin(std::string_view text) {
  while (!text.empty()) {
    const std::size_t i = last_character(text);
    const Utf8Char c = utf8_at(text, i);
    if (c.state != Utf8Char::Valid || !is_white_space(c.code_point)) break;
    text = text.substr(0, i);
  }
  return text.size();
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens,
                         const std::function<std::string(const std::string&)>& normalize)
    : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &AddedToken::id);
  for (std::size_t i = 0; i < tokens_.size(); i++) {
    const AddedToken& token = tokens_[i];
    const bool by_normalize = token.normalized && normalize;
    Entry entry{by_normalize ? normalize(token.content) : token.content, i};
    if (entry.text.empty()) continue;
    (token.normalized ? normalized_ : given_).push_back(std::move(entry));
  }
  for (std::vector<Entry>* const entries : {&given_, &normalized_})
    std::ranges::stable_sort(*entries, {}, &Entry::text);
}

// The entries are sorted, so entries that share their first bytes are neighbours. Each byte of the
// text narrows the range of entries that can match.
AddedTokens::Match AddedTokens::longest_at(const std::vector<Entry>& entries,
                                           std::string_view text) {
  Match longest;
  auto low = entries.begin(), high = entries.end();
  for (std::size_t n = 0; n < text.size() && low != high; n++) {
    const auto byte_at = [n](const Entry& entry) {
      return entry.text.size() > n ? static_cast<unsigned char>(entry.text[n]) : -1;
    };
    const int byte = static_cast<unsigned char>(text[n]);
    low = std::ranges::lower_bound(low, high, byte, {}, byte_at);
    high = std::ranges::upper_bound(low, high, byte, {}, byte_at);
    if (low != high && low->text.size() == n + 1) longest = {low->token, n + 1};
  }
  return longest;
}

// When a match is discarded, shorter matches inside it are not tried, as in
// AddedVocabulary::find_matches of tokenizers.
std::vector<TextPart> AddedTokens::split(std::string_view text,
                                         Of kind,
                                         bool special_as_text) const {
  const std::vector<Entry>& entries = kind == Of::GivenText ? given_ : normalized_;
  std::vector<TextPart> parts;
  std::size_t begun = 0;      // start of the text that is in no part yet
  std::size_t space_end = 0;  // end of the last run of white space that was measured
  for (std::size_t i = 0; i < text.size() && !entries.empty();) {
    const Match match = longest_at(entries, text.substr(i));
    if (match.length == 0) {
      i++;
      continue;
    }
    const AddedToken& token = tokens_[match.token];
    std::size_t start = i, stop = i + match.length;
    i = stop;
    if (special_as_text && token.special) continue;
    if (token.single_word &&
        (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(stop))))
      continue;
    if (token.lstrip)
      start =
          start <= begun ? begun : begun + trailing_space_begin(text.substr(begun, start - begun));
    if (token.rstrip) {
      // Skips white space that already belongs to the previous match.
      if (stop >= space_end) space_end = stop + leading_space(text.substr(stop));
      stop = space_end;
    }
    if (begun < start) parts.push_back({{}, text.substr(begun, start - begun)});
    parts.push_back({token.id, text.substr(start, std::max(start, stop) - start)});
    begun = stop;
  }
  if (begun < text.size()) parts.push_back({{}, text.substr(begun)});
  return parts;
}

}  // namespace engine

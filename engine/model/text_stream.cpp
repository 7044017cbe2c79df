#include "engine/model/tokenizer.h"
#include "engine/model/utf8.h"

namespace engine {

// Where a text begins, decode() may drop a space that piece() shows; so the beginning goes through
// decode(), until it has given something and no character is open. From there on each token adds
// its bytes, and a push costs what it adds.
std::string TextStream::push(std::span<const TokenId> ids) {
  std::string out;
  for (const TokenId id : ids) out += begun_ ? append(id) : begin(id);
  return out;
}

std::string TextStream::begin(TokenId id) {
  start_.push_back(id);
  const std::string text = tokenizer_.decode(start_);
  // A character still open shows as up to three U+FFFD at the end.
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  if (text.empty() || text.ends_with(kReplacement)) return "";
  begun_ = true;
  start_.clear();
  return text;
}

std::string TextStream::append(TokenId id) {
  if (tokenizer_.is_special(id)) return take_whole_characters(pending_, true);
  pending_ += tokenizer_.piece(id);
  return take_whole_characters(pending_, false);
}

std::string TextStream::finish() {
  std::string rest = begun_ ? take_whole_characters(pending_, true) : tokenizer_.decode(start_);
  start_.clear();
  return rest;
}

}  // namespace engine

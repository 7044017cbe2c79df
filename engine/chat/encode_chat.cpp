#include "engine/chat/encode_chat.h"

#include <algorithm>
#include <set>
#include <string>

#include "engine/chat/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {
namespace {

/// A stretch of the rendered text, in bytes.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// Collects the names of special tokens that occur in the contents of messages, longest first.
std::vector<std::string> names_in_contents(const Tokenizer& tokenizer,
                                           std::span<const ChatPart> parts) {
  std::set<TokenId> found;
  for (const ChatPart& part : parts) {
    if (!part.from_message) continue;
    const TextReading reading{.add_special = false, .symbols = true, .continues = true};
    for (const TokenId id : tokenizer.encode(part.text, reading))
      if (tokenizer.is_special(id)) found.insert(id);
  }
  std::vector<std::string> names;
  for (const TokenId id : found)
    if (std::string name = tokenizer.piece(id); !name.empty()) names.push_back(std::move(name));
  std::ranges::sort(names, std::greater{}, &std::string::size);
  return names;
}

std::vector<Range> contents_of(std::span<const ChatPart> parts) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  for (const ChatPart& part : parts) {
    if (part.from_message) ranges.push_back({at, at + part.text.size()});
    at += part.text.size();
  }
  return ranges;
}

/// Finds the names of special tokens that overlap the content of a message, in the order of the
/// text.
std::vector<Range> names_to_be_text(std::string_view text,
                                    const std::vector<std::string>& names,
                                    const std::vector<Range>& contents) {
  std::vector<Range> found;
  auto content = contents.begin();
  for (std::size_t i = 0; i < text.size();) {
    while (content != contents.end() && content->end <= i) content++;
    if (content == contents.end()) break;
    const auto name = std::ranges::find_if(
        names, [&](const std::string& one) { return text.substr(i).starts_with(one); });
    if (name == names.end()) {
      i++;
      continue;
    }
    const Range range = {i, i + name->size()};
    if (range.end > content->begin) found.push_back(range);
    i = range.end;
  }
  return found;
}

/// Encodes consecutive stretches of a text.
class Encoding {
 public:
  Encoding(const Tokenizer& tokenizer, std::string_view text)
      : tokenizer_(tokenizer), text_(text) {}
  void up_to(std::size_t end, bool symbols) {
    if (end == begin_) return;
    const TextReading reading{.add_special = false, .symbols = symbols, .continues = begin_ > 0};
    const auto more = tokenizer_.encode(text_.substr(begin_, end - begin_), reading);
    ids.insert(ids.end(), more.begin(), more.end());
    begin_ = end;
  }
  std::vector<TokenId> ids;

 private:
  const Tokenizer& tokenizer_;
  std::string_view text_;
  std::size_t begin_ = 0;
};

}  // namespace

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::span<const ChatPart> parts) {
  const std::string text = text_of(parts);
  const std::vector<std::string> names = names_in_contents(tokenizer, parts);
  Encoding encoding(tokenizer, text);
  if (!names.empty()) {
    for (const Range& name : names_to_be_text(text, names, contents_of(parts))) {
      encoding.up_to(name.begin, true);
      encoding.up_to(name.end, false);
    }
  }
  encoding.up_to(text.size(), true);
  return std::move(encoding.ids);
}

bool names_special_token(const Tokenizer& tokenizer, std::string_view text) {
  const TextReading reading{.add_special = false, .symbols = true};
  return std::ranges::any_of(tokenizer.encode(text, reading),
                             [&](TokenId id) { return tokenizer.is_special(id); });
}

ChatSettings chat_settings_of(const Tokenizer& tokenizer) {
  const auto text_of_token = [&](std::optional<TokenId> id) {
    return id ? tokenizer.piece(*id) : std::string();
  };
  return {.bos = text_of_token(tokenizer.bos_id()), .eos = text_of_token(tokenizer.eos_id())};
}

}  // namespace engine

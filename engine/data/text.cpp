#include "engine/data/text.h"

#include <cctype>

namespace engine {

std::string fill(std::string_view pattern, std::initializer_list<std::string_view> values) {
  std::string out;
  out.reserve(pattern.size() + 32);
  for (std::size_t i = 0; i < pattern.size(); i++) {
    const bool slot = pattern[i] == '{' && i + 2 < pattern.size() && pattern[i + 2] == '}' &&
                      pattern[i + 1] >= '0' &&
                      pattern[i + 1] < '0' + static_cast<int>(values.size());
    if (!slot) {
      out += pattern[i];
      continue;
    }
    out += values.begin()[pattern[i + 1] - '0'];
    i += 2;
  }
  return out;
}

std::string capitalised(std::string_view text) {
  std::string out(text);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::string enumerated(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i > 0) out += i + 1 == items.size() ? " and " : ", ";
    out += items[i];
  }
  return out;
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); i++) {
    if (i > 0) out += separator;
    out += items[i];
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string replaced_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string normalised(std::string_view text) {
  std::string out;
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    if (std::isalnum(c) || c >= 0x80) {
      out += static_cast<char>(c < 0x80 ? std::tolower(c) : c);
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string_view completion_body(std::string_view completion) {
  completion = trimmed(completion);
  constexpr std::string_view kEnd = "</s>";
  if (completion.ends_with(kEnd)) completion.remove_suffix(kEnd.size());
  return trimmed(completion);
}

PromptAndCompletion chat_form(std::string_view question, std::string_view answer) {
  return {"USER: " + std::string(question) + " ASSISTANT:", " " + std::string(answer)};
}

}  // namespace engine

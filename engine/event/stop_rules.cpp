#include "engine/event/stop_rules.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "engine/base/utf8.h"

namespace engine {
namespace {

std::string without_escapes(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); i++) {
    const char next = line[i] == '\\' && i + 1 < line.size() ? line[i + 1] : '\0';
    const std::size_t which =
        next == '\0' ? std::string_view::npos : std::string_view("ntr\\").find(next);
    text += which == std::string_view::npos ? line[i] : "\n\t\r\\"[which];
    i += which != std::string_view::npos;
  }
  return text;
}

}  // namespace

std::string why_no_stop_text(std::string_view text) {
  if (text.empty()) return "found an empty text, expected at least one character";
  if (text.size() > kMaxStopTextBytes)
    return fmt::format("found {} bytes, expected at most {}", text.size(), kMaxStopTextBytes);
  if (first_bad_utf8(text) != text.size()) return "found bytes that are not UTF-8";
  return "";
}

std::vector<std::string> stop_texts_from(std::string_view lines) {
  std::vector<std::string> texts;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (!line.empty()) texts.push_back(without_escapes(line));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return texts;
}

std::string lines_of_stop_texts(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) {
    if (!lines.empty()) lines += '\n';
    for (const char c : text) {
      const std::size_t which = std::string_view("\n\t\r\\").find(c);
      if (which == std::string_view::npos)
        lines += c;
      else
        lines += {'\\', "ntr\\"[which]};
    }
  }
  return lines;
}

std::optional<std::vector<TokenId>> stop_ids_from(std::string_view text) {
  std::vector<TokenId> ids;
  const auto skip = [&text] {
    text.remove_prefix(std::min(text.find_first_not_of(", \t\n"), text.size()));
  };
  for (skip(); !text.empty(); skip()) {
    TokenId id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc() || id < 0) return std::nullopt;
    ids.push_back(id);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text.find_first_of(", \t\n") != 0) return std::nullopt;
  }
  return ids;
}

std::string text_of_stop_ids(const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += fmt::format("{}{}", text.empty() ? "" : ", ", id);
  return text;
}

}  // namespace engine

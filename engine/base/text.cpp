#include "engine/base/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace engine {
namespace {

constexpr int kMaxQuotedCharacters = 120;

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

bool changes_direction(std::uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

void append_utf8(std::string& text, std::uint32_t code) {  // code in U+0800..U+FFFF
  text += static_cast<char>(0xE0 | (code >> 12));
  text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  text += static_cast<char>(0x80 | (code & 0x3F));
}

void append_printable(std::string& text, std::string_view bytes, LineBreaks breaks) {
  const Utf8Character c = first_character(bytes);
  if (!c.valid) {
    text += fmt::format("<0x{:02X}>", c.code);
  } else if (breaks == LineBreaks::Kept && (c.code == '\n' || c.code == '\t')) {
    text += static_cast<char>(c.code);
  } else if (c.code < 0x20) {
    append_utf8(text, 0x2400 + c.code);
  } else if (c.code == 0x7F) {
    append_utf8(text, 0x2421);
  } else if (is_control(c.code) || changes_direction(c.code)) {
    text += fmt::format("<U+{:04X}>", c.code);
  } else {
    text += bytes.substr(0, static_cast<std::size_t>(c.n_bytes));
  }
}

}  // namespace

Utf8Character first_character(std::string_view bytes) {
  if (bytes.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  const Utf8Character invalid{.code = lead, .n_bytes = 1, .valid = false};
  if (lead < 0x80) return {.code = lead, .n_bytes = 1, .valid = true};

  int n_bytes = 0;
  std::uint32_t code = 0, lowest = 0;
  if ((lead & 0xE0) == 0xC0) n_bytes = 2, code = lead & 0x1F, lowest = 0x80;
  if ((lead & 0xF0) == 0xE0) n_bytes = 3, code = lead & 0x0F, lowest = 0x800;
  if ((lead & 0xF8) == 0xF0) n_bytes = 4, code = lead & 0x07, lowest = 0x10000;
  if (n_bytes == 0 || bytes.size() < static_cast<std::size_t>(n_bytes)) return invalid;
  for (int i = 1; i < n_bytes; ++i) {
    const unsigned char next = byte(static_cast<std::size_t>(i));
    if (!is_continuation(next)) return invalid;
    code = (code << 6) | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lowest || code > 0x10FFFF || surrogate) return invalid;
  return {.code = code, .n_bytes = n_bytes, .valid = true};
}

std::string printable(std::string_view bytes, LineBreaks breaks) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    append_printable(text, bytes, breaks);
    bytes.remove_prefix(static_cast<std::size_t>(first_character(bytes).n_bytes));
  }
  return text;
}

std::size_t whole_characters(std::string_view text, std::size_t max_bytes) {
  std::size_t end = std::min(text.size(), max_bytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return end;
}

bool begins_with_character(std::string_view bytes) {
  return !bytes.empty() && first_character(bytes).valid;
}

std::size_t open_bytes_at_end(std::string_view bytes) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, bytes.size()); ++n) {
    const auto lead = static_cast<unsigned char>(bytes[bytes.size() - n]);
    if (is_continuation(lead)) continue;
    const std::size_t whole = (lead & 0xE0) == 0xC0   ? 2
                              : (lead & 0xF0) == 0xE0 ? 3
                              : (lead & 0xF8) == 0xF0 ? 4
                                                      : 1;
    return n < whole ? n : 0;
  }
  return 0;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Character c = first_character(bytes);
    if (c.valid) {
      text += bytes.substr(0, static_cast<std::size_t>(c.n_bytes));
    } else {
      text += fmt::format("<0x{:02X}>", c.code);
    }
    bytes.remove_prefix(static_cast<std::size_t>(c.n_bytes));
  }
  return text;
}

std::string quoted_for_message(std::string_view found) {
  std::string text;
  for (int n = 0; !found.empty(); ++n) {
    if (n == kMaxQuotedCharacters) return text + "...";
    append_printable(text, found, LineBreaks::Symbols);
    found.remove_prefix(static_cast<std::size_t>(first_character(found).n_bytes));
  }
  return text;
}

std::string json_quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : as_utf8(bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      text += fmt::format("\\u{:04x}", byte);
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string counted(std::int64_t n, std::string_view one, std::string_view many) {
  if (n != 1 && !many.empty()) return fmt::format("{} {}", n, many);
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

}  // namespace engine

#include "engine/base/text.h"

#include <fmt/format.h>

#include "engine/base/utf8.h"

namespace engine {
namespace {

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool changes_direction(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

/// Control characters, line separators, direction changes and characters without width.
bool is_unsafe_in_message(char32_t c) {
  return is_control(c) || changes_direction(c) || c == 0x2028 || c == 0x2029 ||
         (c >= 0x200b && c <= 0x200d) || c == 0xfeff;
}

/// Calls use(c, bytes) for each character of `text`, and for each byte that is not UTF-8; stops
/// when it returns false.
template <typename Use>
void for_each_character(std::string_view text, Use use) {
  while (!text.empty()) {
    const Utf8Char c = utf8_at(text, 0);
    const auto n = static_cast<std::size_t>(c.length);
    if (!use(c, text.substr(0, n))) return;
    text.remove_prefix(n);
  }
}

std::string shown_byte(std::string_view bytes) {
  return fmt::format("<0x{:02X}>", static_cast<unsigned char>(bytes[0]));
}

}  // namespace

std::string printable(std::string_view bytes, LineBreaks breaks) {
  std::string text;
  text.reserve(bytes.size());
  for_each_character(bytes, [&](const Utf8Char& c, std::string_view its_bytes) {
    const char32_t code = c.code_point;
    if (c.state != Utf8Char::Valid) {
      text += shown_byte(its_bytes);
    } else if (breaks == LineBreaks::Kept && (code == '\n' || code == '\t')) {
      text += its_bytes;
    } else if (code < 0x20) {
      append_utf8(text, 0x2400 + code);
    } else if (code == 0x7f) {
      append_utf8(text, 0x2421);
    } else if (is_control(code) || changes_direction(code)) {
      text += fmt::format("<U+{:04X}>", static_cast<unsigned>(code));
    } else {
      text += its_bytes;
    }
    return true;
  });
  return text;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for_each_character(bytes, [&](const Utf8Char& c, std::string_view its_bytes) {
    text += c.state == Utf8Char::Valid ? std::string(its_bytes) : shown_byte(its_bytes);
    return true;
  });
  return text;
}

std::string escaped(std::string_view text, int max_characters) {
  std::string out;
  int n_shown = 0;
  for_each_character(text, [&](const Utf8Char& c, std::string_view bytes) {
    if (n_shown++ == max_characters) {
      out += "...";
      return false;
    }
    const auto code = static_cast<unsigned>(c.code_point);
    if (c.state != Utf8Char::Valid || (is_unsafe_in_message(c.code_point) && code < 0x80)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    } else if (is_unsafe_in_message(c.code_point)) {
      out += fmt::format("\\u{{{:x}}}", code);
    } else {
      out += bytes;
    }
    return true;
  });
  return out;
}

std::string in_quotes(std::string_view text) {
  return "\"" + escaped(text) + "\"";
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

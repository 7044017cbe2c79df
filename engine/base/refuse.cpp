#include "engine/base/refuse.h"

#include <fmt/format.h>

#include "engine/base/utf8.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr int kMaxShownCodePoints = 120;

bool is_unsafe(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool separator = c == 0x2028 || c == 0x2029;
  const bool bidi = (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
                    (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
  return control || separator || bidi;
}

std::string escaped_up_to(int max_code_points, std::string_view text) {
  std::string out;
  int n_shown = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (n_shown++ == max_code_points) return out + "...";
    const Utf8Char c = utf8_at(text, i);
    if (c.state != Utf8Char::Valid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    } else if (is_unsafe(c.code_point)) {
      out += c.code_point < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c.code_point))
                                 : fmt::format("\\u{{{:x}}}", static_cast<unsigned>(c.code_point));
    } else {
      out += text.substr(i, static_cast<std::size_t>(c.length));
    }
    i += static_cast<std::size_t>(c.length);
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return escaped_up_to(kMaxShownCodePoints, text);
}

std::string in_quotes(std::string_view text) {
  return "\"" + escaped(text) + "\"";
}

void refuse(const std::string& file,
            const std::string& field,
            const std::string& found,
            const std::string& expected) {
  constexpr int kMaxPathCodePoints = 4096;  // a path is the reader's own; it is not cut
  throw Error(ErrorCode::BadInput, escaped_up_to(kMaxPathCodePoints, file) + ": " + field +
                                       ": found " + found + ", expected " + expected);
}

}  // namespace engine

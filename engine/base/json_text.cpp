#include "engine/base/json_text.h"

#include <fmt/format.h>

#include "engine/base/text.h"

namespace engine {

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

std::string as_microseconds(std::int64_t ns) {
  std::string text = fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace engine

#include "engine/base/utf8.h"

#include <algorithm>

namespace engine {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

Utf8Char utf8_at(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[i + k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Utf8Char::Valid, 1, lead};
  if (lead < 0xc2 || lead > 0xf4) return {Utf8Char::Invalid, 1, 0};
  const int length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  unsigned char low = 0x80, high = 0xbf;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  char32_t c = lead & (0x7f >> length);
  for (int k = 1; k < length; k++) {
    if (i + static_cast<std::size_t>(k) >= text.size()) return {Utf8Char::Incomplete, 1, 0};
    const unsigned char b = byte(static_cast<std::size_t>(k));
    if (b < low || b > high) return {Utf8Char::Invalid, 1, 0};
    c = (c << 6) | (b & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Char::Valid, length, c};
}

std::size_t first_bad_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      i++;
      continue;
    }
    const Utf8Char c = utf8_at(text, i);
    if (c.state != Utf8Char::Valid) return i;
    i += static_cast<std::size_t>(c.length);
  }
  return i;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

std::string take_whole_characters(std::string& pending, bool at_end) {
  std::string out;
  std::size_t i = 0;
  while (i < pending.size()) {
    const Utf8Char c = utf8_at(pending, i);
    if (c.state == Utf8Char::Incomplete && !at_end) break;
    if (c.state == Utf8Char::Valid) {
      out.append(pending, i, static_cast<std::size_t>(c.length));
    } else {
      out += kReplacement;
    }
    i += static_cast<std::size_t>(c.length);
  }
  pending.erase(0, i);
  return out;
}

std::size_t whole_characters(std::string_view text, std::size_t max_bytes) {
  std::size_t end = std::min(text.size(), max_bytes);
  while (end > 0 && end < text.size() && is_continuation(text[end])) --end;
  return end;
}

bool begins_with_character(std::string_view bytes) {
  return !bytes.empty() && utf8_at(bytes, 0).state == Utf8Char::Valid;
}

std::size_t open_bytes_at_end(std::string_view bytes) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, bytes.size()); ++n) {
    const auto lead = static_cast<unsigned char>(bytes[bytes.size() - n]);
    if (is_continuation(static_cast<char>(lead))) continue;
    const std::size_t whole = (lead & 0xE0) == 0xC0   ? 2
                              : (lead & 0xF0) == 0xE0 ? 3
                              : (lead & 0xF8) == 0xF0 ? 4
                                                      : 1;
    return n < whole ? n : 0;
  }
  return 0;
}

}  // namespace engine

// UTF-8 one character at a time, as table 3-7 of the Unicode standard allows it: no overlong forms,
// no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace engine {

/// One character of a text, or one byte that is not UTF-8.
struct Utf8Char {
  /// The validity of the bytes.
  enum State {
    Valid,
    Invalid,     // no character starts with this byte; length 1
    Incomplete,  // the text ends inside a character that is right so far; length 1
  };
  State state = Invalid;
  int length = 1;  // bytes to the next character
  char32_t code_point = 0;
};

/// The character at text[i], i < text.size().
Utf8Char utf8_at(std::string_view text, std::size_t i);

/// Offset of the first byte that is not part of a whole character; text.size() if there is none.
std::size_t first_bad_utf8(std::string_view text);

/// Appends code point `c` (a scalar value) to `out`.
void append_utf8(std::string& out, char32_t c);

/// Moves the whole characters at the start of `pending` to the result; a byte that cannot belong to
/// a character becomes U+FFFD. The start of a character (at most 3 bytes) stays in `pending`,
/// nothing if `at_end`.
std::string take_whole_characters(std::string& pending, bool at_end);

/// The largest n <= max_bytes such that the first n bytes of UTF-8 `text` end between characters.
std::size_t whole_characters(std::string_view text, std::size_t max_bytes);

/// True if the first bytes are a whole character.
bool begins_with_character(std::string_view bytes);
/// Number of bytes at the end that begin a character which is not whole yet: 0 to 3.
std::size_t open_bytes_at_end(std::string_view bytes);

}  // namespace engine

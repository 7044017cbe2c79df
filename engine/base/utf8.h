// Reading UTF-8 one character at a time, as the Unicode standard's table 3-7 allows it: no overlong
// forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace engine {

struct Utf8Char {
  enum State {
    Valid,
    Invalid,     // no character starts with this byte; length 1
    Incomplete,  // the text ends inside a character that is right so far; length 1
  };
  State state = Invalid;
  int length = 1;  // bytes to move on by
  char32_t code_point = 0;
};

/// The character at text[i], i < text.size().
Utf8Char utf8_at(std::string_view text, std::size_t i);

/// Offset of the first byte that is not part of a whole character; text.size() if there is none.
std::size_t first_bad_utf8(std::string_view text);

/// Appends code point `c` (a scalar value) to `out`.
void append_utf8(std::string& out, char32_t c);

/// Moves the whole characters at the start of `pending` to the result, bytes that cannot belong to
/// a character as U+FFFD each. What stays in `pending` is the beginning of a character (at most 3
/// bytes), or nothing if `at_end`.
std::string take_whole_characters(std::string& pending, bool at_end);

}  // namespace engine

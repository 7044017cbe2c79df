// Bytes of tokens as text a person can read and a file can hold. Every export and panel goes
// through here, so that half a character looks the same everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// One character at the front of some bytes.
struct Utf8Character {
  std::uint32_t code = 0;  // the byte itself where the bytes are not UTF-8
  int n_bytes = 0;         // 0: no bytes were given
  bool valid = false;      // not overlong, no surrogate, at most U+10FFFF
};

/// What `bytes` begin with; an invalid or incomplete sequence is one byte long.
Utf8Character first_character(std::string_view bytes);

enum class LineBreaks : std::uint8_t { Symbols, Kept };

/// Printable UTF-8: characters and spaces as they are, control characters as symbols (U+2400
/// block), characters that change the writing direction as <U+202E>, bytes that are no UTF-8 as
/// <0xF0>.
/// @param breaks  Kept leaves line feed and tab as they are
std::string printable(std::string_view bytes, LineBreaks breaks = LineBreaks::Symbols);

/// The same bytes with those that are no UTF-8 written as <0xF0>; control characters stay.
std::string as_utf8(std::string_view bytes);

/// How many of the first `max_bytes` bytes of UTF-8 text end between characters.
std::size_t whole_characters(std::string_view text, std::size_t max_bytes);

/// Whether the first bytes are a whole character of UTF-8.
bool begins_with_character(std::string_view bytes);
/// Bytes at the end that begin a character of UTF-8 which is not whole yet: 0 to 3.
std::size_t open_bytes_at_end(std::string_view bytes);

/// A name found in a file, for a message: printable, cut after 120 characters with "...".
std::string quoted_for_message(std::string_view found);

/// A JSON string with its quotes: raw UTF-8 above U+007F (Perfetto refuses escaped surrogates),
/// control characters escaped, bytes that are not UTF-8 as <0xF0>.
std::string json_quoted(std::string_view bytes);

/// A number with its noun: "1 step", "2 steps".
/// @param many  the plural; empty: the noun with an s
std::string counted(std::int64_t n, std::string_view one, std::string_view many = {});

}  // namespace engine

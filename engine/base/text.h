// Text for people, messages and files: how bytes that may not be UTF-8, control characters and
// numbers are written.
//   printable          tokens and recorded text on a panel or in a table
//   escaped, in_quotes names and values from files in an error message
//   as_utf8            bytes in a file that must be UTF-8
//   json_quoted        a JSON string
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// How printable() writes a line feed or a tab: as a visible symbol, or as it is.
enum class LineBreaks : std::uint8_t { Symbols, Kept };

/// Printable UTF-8: control characters as symbols (U+2400 block), characters that change the
/// writing direction as <U+202E>, bytes that are not UTF-8 as <0xF0>.
std::string printable(std::string_view bytes, LineBreaks breaks = LineBreaks::Symbols);

/// The same bytes with those that are not UTF-8 written as <0xF0>; control characters stay.
std::string as_utf8(std::string_view bytes);

/// `text` for an error message, so that no terminal or log receives raw bytes of a file: control
/// characters, direction changes and bytes that are not UTF-8 as \xNN or \u{N}.
/// @param max_characters  cut after that many code points with "..."
std::string escaped(std::string_view text, int max_characters = 120);
/// escaped() between double quotes.
std::string in_quotes(std::string_view text);

/// A JSON string with its quotes: raw UTF-8 above U+007F (Perfetto refuses escaped surrogates),
/// control characters escaped, bytes that are not UTF-8 as <0xF0>.
std::string json_quoted(std::string_view bytes);

/// A number with its noun: "1 step", "2 steps".
/// @param many  the plural; empty: the noun with an s
std::string counted(std::int64_t n, std::string_view one, std::string_view many = {});

}  // namespace engine

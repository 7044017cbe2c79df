// Byte-level tokenizers write each byte as one character in their files, its symbol: the symbol of a
// printable byte is the character of the same code, and the other bytes have characters from U+0100
// on.
//   source  GPT-2's encoder.py (Radford et al. 2019), bytes_to_unicode
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine {

/// Appends the symbols of `bytes` to `out`, as UTF-8.
void append_byte_symbols(std::string& out, std::string_view bytes);

/// The bytes whose symbols `text` consists of; nullopt if it contains another character.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace engine

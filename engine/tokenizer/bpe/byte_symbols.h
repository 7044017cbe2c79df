// Files of byte-level tokenizers write each byte as one character, its symbol. A printable byte is
// written as the character with the same code, any other byte as a character from U+0100 on. source
// GPT-2's encoder.py (Radford et al. 2019), bytes_to_unicode
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine {

/// Appends the symbols of `bytes` to `out`, as UTF-8.
void append_byte_symbols(std::string& out, std::string_view bytes);

/// Converts symbols back to bytes; nullopt if `text` contains a character that is not a symbol.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace engine

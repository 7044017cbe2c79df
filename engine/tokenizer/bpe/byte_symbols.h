// The characters that byte-level tokenizers use for bytes in their files: printable bytes stand for
// themselves, each other byte for a character from U+0100 on.
//   source  GPT-2's encoder.py (Radford et al. 2019), bytes_to_unicode
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine {

/// Appends the symbols of `bytes` to `out`, as UTF-8.
void append_byte_symbols(std::string& out, std::string_view bytes);

/// The bytes that the symbols of `text` stand for; nullopt if a character is no symbol of a byte.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace engine

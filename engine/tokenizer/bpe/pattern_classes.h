// Translates a splitting pattern of Hugging Face's tokenizers library (Oniguruma with Ruby's
// syntax, Unicode 16) or of tiktoken (Rust's regex crate, Unicode 16) to PCRE2. The PCRE2 of Debian
// 12 knows Unicode 14, and its `\s` has one character more.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine {

/// The pattern for PCRE2: `\s`, `\S` and `\d` are spelled out, and the categories that published
/// patterns use get the characters that Unicode 15 to 16 added. Other syntax stays.
/// @return  nullopt for a class within a class ("[a[b]]", "[[:alpha:]]") or an intersection
///          ("[a&&b]"), which PCRE2 reads in another way
std::optional<std::string> pcre_pattern(std::string_view pattern);

}  // namespace engine

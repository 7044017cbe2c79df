// Translates a splitting pattern of Hugging Face's tokenizers library (Oniguruma with Ruby's
// syntax, Unicode 16) or of tiktoken (Rust's regex crate, Unicode 16) to PCRE2. Debian 12's PCRE2
// uses Unicode 14, and its `\s` has one more character.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace engine {

/// Translates a pattern for PCRE2. Spells out `\s`, `\S` and `\d`, and adds the characters of
/// Unicode 15 and 16 to the categories that published patterns use. Other syntax is kept.
/// @return  nullopt for a class within a class ("[a[b]]", "[[:alpha:]]") or an intersection
///          ("[a&&b]"), which mean something else in PCRE2
std::optional<std::string> pcre_pattern(std::string_view pattern);

}  // namespace engine

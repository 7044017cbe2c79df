// Translates a splitting pattern of Hugging Face's tokenizers library (Oniguruma with Ruby's
// syntax, Unicode 16) or of tiktoken (Rust's regex crate, Unicode 16) to PCRE2. The PCRE2 of Debian
// 12 knows Unicode 14, and its `\s` has one character more.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// The pattern for PCRE2: `\s`, `\S` and `\d` are spelled out, and general categories get the
/// characters that Unicode 15 to 16 added. Other syntax stays.
std::string pcre_pattern(std::string_view pattern);

}  // namespace engine

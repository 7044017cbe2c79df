// Character classes for matching added tokens: `\s` and `\w` of the Rust regex crate, which Hugging
// Face's tokenizers library uses.
#pragma once

namespace engine {

/// White_Space of the Unicode standard (`\s`).
bool is_white_space(char32_t c);
/// A word character (`\w`): alphabetic, a mark, a decimal digit, a connector or a joiner.
bool is_word_character(char32_t c);

}  // namespace engine

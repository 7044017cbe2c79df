// The two classes of characters that rules for added tokens speak of, as the `\s` and `\w` of the
// Rust regex crate, which Hugging Face's tokenizers library uses.
#pragma once

namespace engine {

/// White_Space of the Unicode standard.
bool is_white_space(char32_t c);
/// A character of a word: alphabetic, a mark, a decimal digit, a connector or a joiner.
bool is_word_character(char32_t c);

}  // namespace engine

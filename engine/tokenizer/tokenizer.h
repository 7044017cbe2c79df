// Text to token ids and back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// How far a text has come between two of its tokens.
struct TextState {
  bool at_start = true;    // nothing was written yet: a first word may lose its leading space
  std::string open_bytes;  // the beginning of a character that is not complete
};

/// How encode() takes a text.
struct TextReading {
  bool add_special = true;  // begin with bos, end with eos where the tokenizer's files say so
  bool symbols = false;    // the names of control symbols ("<s>") are their ids, as in transformers
  bool continues = false;  // it stands after other text: no space is put before its first word
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int vocab_size() const = 0;
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  virtual std::vector<TokenId> encode(std::string_view text, const TextReading& reading) const = 0;
  /// Ids of `text` as plain text: the name of a control symbol in it is text.
  std::vector<TokenId> encode(std::string_view text, bool add_special = true) const {
    return encode(text, TextReading{.add_special = add_special});
  }
  /// The text that `id` completes after the tokens that led to `state`, which is moved on. Whole
  /// UTF-8 characters only. Special tokens give nothing, but end a character that is open; bytes
  /// that belong to no character give U+FFFD each.
  virtual std::string extend(TextState& state, TokenId id) const = 0;
  /// Text of ids as a whole: what extend() gives for each in turn, then open bytes as U+FFFD each.
  std::string decode(std::span<const TokenId> ids) const;
  /// The bytes one token adds in the middle of a text (a leading space is a space). Byte tokens
  /// give their byte, special tokens their name, ids outside the vocabulary an empty string.
  virtual std::string piece(TokenId id) const = 0;
  virtual bool is_special(TokenId id) const = 0;
};

/// The text of tokens that continue a prompt, while they come: decode(prompt + tokens) without
/// decode(prompt) at its front. A first word keeps its leading space after a prompt that has text.
/// A character that the prompt leaves open and the tokens complete belongs to the tokens' text as a
/// whole; if they do not complete it, its U+FFFD belong to the prompt's.
/// The result does not depend on how the tokens are split into pushes.
class TextStream {
 public:
  /// @param prompt  the ids that stand before the tokens; read here, not kept
  TextStream(const Tokenizer& tokenizer, std::span<const TokenId> prompt);
  /// @return  the text that became complete with these ids, whole UTF-8 characters
  std::string push(std::span<const TokenId> ids);
  /// @return  what is left, incomplete bytes as U+FFFD
  std::string finish();

 private:
  std::string without_prompt(std::string text);

  const Tokenizer* tokenizer_;  // owned by the model, which outlives its streams
  TextState state_;
  std::size_t n_prompt_bytes_ = 0;  // of state_.open_bytes, those that the prompt left open
};

/// The whole text of `tokens` after `prompt`, as a TextStream gives it.
std::string continuation_text(const Tokenizer& tokenizer,
                              std::span<const TokenId> prompt,
                              std::span<const TokenId> tokens);

}  // namespace engine

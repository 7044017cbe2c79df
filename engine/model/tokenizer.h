// Text to token ids and back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace engine {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int vocab_size() const = 0;
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  /// Ids of `text`; begins with bos (ends with eos) when the tokenizer's own configuration says so.
  /// Text that looks like a special token is text.
  virtual std::vector<TokenId> encode(std::string_view text, bool add_special = true) const = 0;
  /// Text of ids as a whole. Special tokens give nothing, but end a character that was
  /// open; bytes of no whole character give U+FFFD each.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  /// The bytes one token adds in the middle of a text (a leading space is a space). Byte tokens
  /// give their byte, special tokens their name, ids outside the vocabulary an empty string.
  virtual std::string piece(TokenId id) const = 0;
  virtual bool is_special(TokenId id) const = 0;
};

/// Turns a growing row of ids into a growing text: whole UTF-8 characters only, spaces right at
/// every boundary. Concatenating what push() and finish() return equals decode() of all ids.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  /// @return  the text that became complete with these ids
  std::string push(std::span<const TokenId> ids);
  /// @return  what is left, incomplete bytes as U+FFFD
  std::string finish();

 private:
  std::string begin(TokenId id);
  std::string append(TokenId id);

  const Tokenizer& tokenizer_;  // owned by the model, which outlives its streams
  std::vector<TokenId> start_;  // ids so far, until the text has begun
  bool begun_ = false;
  std::string pending_;  // bytes of a character that is not whole yet
};

}  // namespace engine

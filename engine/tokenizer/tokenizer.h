// Converts text to token ids and back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/types.h"

namespace engine {

/// The state of a text that is decoded token by token.
struct TextState {
  bool at_start = true;    // no text was decoded yet, so the first word may lose its leading space
  std::string open_bytes;  // the start of an incomplete character
};

/// Options of encode().
struct TextReading {
  bool add_special = true;  // add bos and eos according to the tokenizer's files
  bool symbols = false;     // names of control symbols ("<s>") become their ids, as in transformers
  bool continues = false;   // the text follows other text: no space before its first word
};

/// A tokenizer.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Number of ids: the highest one plus 1.
  virtual int vocab_size() const = 0;
  /// The id of the begin symbol; nullopt: none.
  virtual std::optional<TokenId> bos_id() const = 0;
  /// The id of the end symbol; nullopt: none.
  virtual std::optional<TokenId> eos_id() const = 0;
  /// All ids that end a turn or a text, ascending: eos_id(), those that the files list, and those
  /// with known names (end_of_turn.h).
  virtual std::vector<TokenId> end_of_turn_ids() const;
  /// The ids of `text`.
  /// @throws Error(BadInput)  for a text longer than the limit prompt_bytes
  virtual std::vector<TokenId> encode(std::string_view text, const TextReading& reading) const = 0;
  /// Encodes `text`; names of control symbols are plain text.
  std::vector<TokenId> encode(std::string_view text, bool add_special = true) const {
    return encode(text, TextReading{.add_special = add_special});
  }
  /// Decodes the next token of a text and updates `state`.
  /// @return  whole UTF-8 characters that `id` completes. A special token adds no text but ends an
  ///          incomplete character. A byte that is part of no character gives U+FFFD
  virtual std::string extend(TextState& state, TokenId id) const = 0;
  /// Decodes `ids`: calls extend() for each id, then adds a U+FFFD for each byte of an incomplete
  /// character.
  std::string decode(std::span<const TokenId> ids) const;
  /// The bytes that a token adds in the middle of a text, including its leading space. For a byte
  /// token: its byte; for a special token: its name; for an id outside the vocabulary: "".
  virtual std::string piece(TokenId id) const = 0;
  /// True for a control symbol, which decodes to no text.
  virtual bool is_special(TokenId id) const = 0;
};

/// Checks the length of a text to encode.
/// @throws Error(BadInput)  if it exceeds the limit prompt_bytes
void check_length(std::string_view text, const FileLimits& limits);

/// Streams the text that `tokens` add after `prompt`: decode(prompt + tokens) without
/// decode(prompt). The first word keeps its leading space if the prompt has text. If the prompt
/// ends with an incomplete character and the tokens complete it, the tokens get the whole
/// character. Otherwise the prompt gets a U+FFFD for each of its bytes. The result does not depend
/// on how the tokens are divided among calls of push().
class TextStream {
 public:
  /// @param prompt  the ids before the tokens; not kept
  TextStream(const Tokenizer& tokenizer, std::span<const TokenId> prompt);
  /// Adds tokens.
  /// @return  the whole UTF-8 characters that they complete
  std::string push(std::span<const TokenId> ids);
  /// Ends the text.
  /// @return  a U+FFFD for each byte of an incomplete character
  std::string finish();

 private:
  std::string without_prompt(std::string text);

  const Tokenizer* tokenizer_;  // owned by the model, which outlives its streams
  TextState state_;
  std::size_t n_prompt_bytes_ = 0;  // how many of state_.open_bytes are from the prompt
};

/// The whole text that `tokens` add after `prompt`, as a TextStream returns it.
std::string continuation_text(const Tokenizer& tokenizer,
                              std::span<const TokenId> prompt,
                              std::span<const TokenId> tokens);

}  // namespace engine

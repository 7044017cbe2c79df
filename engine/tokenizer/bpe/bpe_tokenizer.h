// Tokenizers of byte-pair encoding. There are two kinds: byte-level tokenizers (GPT-2), and
// tokenizers of characters with byte tokens for characters outside the vocabulary (SentencePiece).
// The readers of the files (gguf_tokenizer.h, tokenizer_json.h, tiktoken.h) fill a BpeDefinition.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/limits.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/bpe/bpe_model.h"
#include "engine/tokenizer/bpe/normalizer.h"
#include "engine/tokenizer/bpe/pre_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// How the texts of tokens are decoded.
struct BpeDecoding {
  /// Spaces that decoding removes from the first token of a text.
  enum class First : std::uint8_t {
    Nothing,
    OneSpace,   // a leading space
    AllSpaces,  // every character that `replacements` produces or replaces
  };
  bool byte_symbols = false;  // texts are written with byte symbols (byte_symbols.h)
  bool byte_tokens = false;   // the token "<0x41>" decodes to the byte 0x41
  std::vector<std::pair<std::string, std::string>> replacements;  // in each text, in order
  First first = First::Nothing;
};

/// All parts of one tokenizer.
struct BpeDefinition {
  std::vector<std::string> texts;  // [n] by id; "": no token. `added` may have further ids
  BpeRules rules;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeDecoding decoding;
  std::vector<AddedToken> added;       // distinct ids and contents
  std::vector<TokenId> before, after;  // TextReading::add_special adds them around the text
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_of_turn;  // added to those that Tokenizer::end_of_turn_ids() finds
  FileLimits limits;
};

/// Makes the tokenizer.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeDefinition definition);

}  // namespace engine

// Tokenizers of byte-pair encoding: byte-level ones (GPT-2's kind) and those whose tokens are
// characters with byte tokens for the rest (SentencePiece's kind). The readers of the files
// (gguf_tokenizer.h, tokenizer_json.h, tiktoken.h) fill a BpeDefinition.
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

/// How the texts of tokens become text again.
struct BpeDecoding {
  /// What the first token of a text loses.
  enum class First : std::uint8_t {
    Nothing,
    OneSpace,   // a leading space
    AllSpaces,  // every character that stands for a space (the decoder Metaspace)
  };
  bool byte_symbols = false;  // texts are symbols of bytes (byte_symbols.h)
  bool byte_tokens = false;   // "<0x41>" is a byte
  std::vector<std::pair<std::string, std::string>> replacements;  // in each text, in order
  First first = First::Nothing;
};

/// All parts of one tokenizer.
struct BpeDefinition {
  std::vector<std::string> texts;  // [n] by id; "": no token. Without the added tokens that are new
  BpeRules rules;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  BpeDecoding decoding;
  std::vector<AddedToken> added;       // distinct ids and contents; ids may exceed `texts`
  std::vector<TokenId> before, after;  // what add_special adds
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_of_turn;  // beside those that Tokenizer::end_of_turn_ids() finds
  FileLimits limits;
};

/// Makes the tokenizer.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeDefinition definition);

}  // namespace engine

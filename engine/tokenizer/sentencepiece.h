// SentencePiece models: a scan of the file that trusts nothing, then the sentencepiece library.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/added_tokens.h"
#include "engine/base/limits.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

struct SentencePieceOptions {
  /// Which stretches of text between added tokens get a space before their first word.
  enum class Prefix { Never, FirstStretch, EveryStretch };

  bool add_bos = true;
  bool add_eos = false;
  std::optional<std::string> bos_token,
      eos_token;                  // their texts; empty: none; nullopt: the model's
  std::vector<AddedToken> added;  // placed (tokenizer_files.h)
  bool symbols_are_text = false;  // also where TextReading says otherwise
  /// True: texts are normalised as the model was trained, with its rules for spaces. False: they are
  /// taken as they are, and a prefix is put only before what does not begin with a space, as the
  /// LlamaTokenizer of transformers 5 does.
  bool own_normalizer = true;
  Prefix prefix = Prefix::EveryStretch;  // own_normalizer: if the model has a dummy prefix
  FileLimits limits;
};

/// @throws Error(BadInput)  naming the file and the place, for anything that is not a usable
/// SentencePiece model
std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path,
                                              const SentencePieceOptions& options);

/// tokenizer.model of a directory, with what the JSON files beside it say (tokenizer_files.h).
/// @param model_type  of config.json: transformers reads the tokenizers of some by other rules
/// @param vocab_size  of config.json; 0: unknown
/// @param notices     receives what is not applied or odd
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices,
                                          const std::string& model_type = "llama",
                                          int vocab_size = 0);

}  // namespace engine

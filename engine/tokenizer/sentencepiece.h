// SentencePiece tokenizers. The file is checked (sentencepiece_scan.h) before the sentencepiece
// library reads it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// Rules of a tokenizer that its SentencePiece model does not contain.
struct SentencePieceOptions {
  /// Selects the stretches of text between added tokens that get a space before their first word.
  enum class Prefix { Never, FirstStretch, EveryStretch };

  bool add_bos = true;
  bool add_eos = false;
  std::optional<std::string> bos_token,
      eos_token;                  // their texts; "": none; nullopt: the model's
  std::vector<AddedToken> added;  // with their ids (placed_tokens() of tokenizer_files.h)
  // names of symbols are always plain text; TextReading::symbols is ignored
  bool symbols_are_text = false;
  /// True: uses the model's normaliser and rules for spaces. False: does not normalise, and adds no
  /// prefix to a stretch that begins with a space, as in transformers 5's LlamaTokenizer.
  bool own_normalizer = true;
  // if own_normalizer is true, has an effect only if the model has a dummy prefix
  Prefix prefix = Prefix::EveryStretch;
  FileLimits limits;
};

/// Opens a tokenizer.model without the JSON files beside it.
/// @throws Error(BadInput)  with file and place, if it is not a usable SentencePiece model
std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path,
                                              const SentencePieceOptions& options);

/// Opens the tokenizer.model of a directory with the JSON files beside it (tokenizer_files.h).
/// @throws Error(BadInput)  for a file that cannot be used
std::unique_ptr<Tokenizer> open_sentencepiece_directory(const std::string& directory,
                                                        const FileLimits& limits,
                                                        std::vector<std::string>& notices,
                                                        const std::string& model_type,
                                                        int vocab_size);

/// Opens the tokenizer of a directory: a SentencePiece tokenizer.model; else tokenizer.json; else
/// tekken.json; else a tokenizer.model or .tiktoken file in tiktoken's form. Applies
/// tokenizer_config.json and the files beside it.
/// @param model_type  of config.json; transformers has special rules for some types
/// @param vocab_size  of config.json; 0: unknown
/// @param notices     receives a notice for each setting that is not applied
/// @throws Error(BadInput)  for a file that cannot be used
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices,
                                          const std::string& model_type = "llama",
                                          int vocab_size = 0);

}  // namespace engine

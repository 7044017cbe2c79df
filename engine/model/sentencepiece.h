// SentencePiece models: a scan of the file that trusts nothing, then the sentencepiece library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model/limits.h"
#include "engine/model/tokenizer.h"

namespace engine {

struct SentencePieceOptions {
  bool add_bos = true;
  bool add_eos = false;
  std::string bos_token, eos_token;  // pieces; empty: what the model's trainer wrote
  FileLimits limits;
};

/// @throws Error(BadInput)  naming the file and the place, for anything that is not a usable
/// SentencePiece model
std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path,
                                              const SentencePieceOptions& options);

/// tokenizer.model of a directory, with what its tokenizer_config.json says of bos and eos.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& directory,
                                          const FileLimits& limits,
                                          std::vector<std::string>& notices);

}  // namespace engine

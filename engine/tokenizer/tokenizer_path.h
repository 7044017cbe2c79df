// Opens a tokenizer by the path of a file or a directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// True if a directory has a tokenizer that open_tokenizer() (sentencepiece.h) can read: a
/// tokenizer.model, tokenizer.json, tekken.json or a .tiktoken file.
bool has_tokenizer(const std::string& directory);

/// Opens the tokenizer of a model: a directory, a GGUF file (also one without tensors), a
/// tokenizer.json, a SentencePiece model, a file in tiktoken's form or a tekken.json.
/// @param notices  receives a notice for each setting that is not applied
/// @throws Error(BadInput)
std::shared_ptr<const Tokenizer> open_tokenizer_at(const std::string& path,
                                                   const FileLimits& limits,
                                                   std::vector<std::string>& notices);

}  // namespace engine

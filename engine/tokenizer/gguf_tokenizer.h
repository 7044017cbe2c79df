// Tokenizers from the metadata of GGUF files (keys tokenizer.ggml.*): byte-level BPE ("gpt2"),
// SentencePiece's BPE by scores ("llama") and Gemma 4's BPE ("gemma4").
//   rules  as llama.cpp reads them (October 2026); token types 1 normal, 2 unknown, 3 control,
//          4 user-defined, 5 unused, 6 byte
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// Creates the tokenizer of a GGUF file, which may have a vocabulary but no tensors.
/// @param notices  receives a notice for each setting that is not applied as in the file
/// @throws Error(BadInput)  "file: key: found X, expected Y" for metadata that cannot be used
std::shared_ptr<const Tokenizer> open_gguf_tokenizer(const GgufFile& file,
                                                     const FileLimits& limits,
                                                     std::vector<std::string>& notices);

}  // namespace engine

// Reads the tokenizer.json of Hugging Face's tokenizers library: byte-pair models, and the
// normalisers, pre-tokenisers, post-processors and decoders of models like LLaMA. source the
// library's documentation and sources (tokenizers 0.23)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/tokenizer/bpe/bpe_tokenizer.h"
#include "engine/tokenizer/tokenizer_files.h"

namespace engine {

/// Reads a file. Refuses unknown parts that could change the ids.
/// @param notices  receives a notice for ids that belong to no token
/// @throws Error(BadInput)  "file: field: found X, expected Y", with the JSON path as the field
BpeDefinition read_tokenizer_json(const std::string& path,
                                  const FileLimits& limits,
                                  std::vector<std::string>& notices);

/// Applies tokenizer_config.json and the files beside it, as transformers does: the names of bos and
/// eos, and tokens that these files add.
/// @param file  from which the definition was read, for messages
/// @throws Error(BadInput)  if they name a token that the tokenizer does not have
void apply_settings(const TokenizerSettings& settings,
                    const std::string& file,
                    BpeDefinition& definition);

/// Number of ids of a tokenizer.json: the highest id plus 1. 0 if its vocabulary has another form.
/// @throws Error(BadInput)  if it is not JSON
std::int64_t count_tokens_of_json(const std::string& path, const FileLimits& limits);

}  // namespace engine

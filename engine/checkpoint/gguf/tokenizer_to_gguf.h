// Writes the tokenizer of a Hugging Face directory as metadata of a GGUF file.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/gguf/gguf_writer.h"
#include "engine/checkpoint/model_files.h"

namespace engine {

/// Adds the vocabulary of a SentencePiece tokenizer.model of type BPE, or of a tokenizer.json with
/// byte-level BPE, the ids of special tokens, and the chat template. Ids without a token get unused
/// ones, because llama.cpp needs one for every row of the embedding.
/// @param notices  receives texts that llama.cpp tokenises differently, or that there is no tokenizer
/// @throws Error(BadInput)  for a tokenizer that GGUF files cannot hold
void tokenizer_to_gguf(const ModelFiles& files,
                       GgufHeader& header,
                       std::vector<std::string>& notices);

}  // namespace engine

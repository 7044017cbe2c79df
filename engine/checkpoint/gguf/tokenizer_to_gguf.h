// Writes the tokenizer of a Hugging Face directory as metadata of a GGUF file.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/gguf/gguf_writer.h"
#include "engine/checkpoint/model_files.h"

namespace engine {

/// Adds the vocabulary of a SentencePiece tokenizer.model of type BPE, or of a tokenizer.json with
/// byte-level BPE, the ids of special tokens, and the chat template. An id without a token gets an
/// unused token, because llama.cpp needs one for every row of the embedding.
/// @param notices  receives a notice if llama.cpp will tokenise some texts differently, or if the
///                 model has no tokenizer
/// @throws Error(BadInput)  for a tokenizer that GGUF files cannot hold
void tokenizer_to_gguf(const ModelFiles& files,
                       GgufHeader& header,
                       std::vector<std::string>& notices);

}  // namespace engine

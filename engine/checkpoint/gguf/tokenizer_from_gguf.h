// Writes the tokenizer of a GGUF file as the files of a Hugging Face directory.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// Writes tokenizer.json (byte-level BPE) or tokenizer.model (SentencePiece's kind), and
/// tokenizer_config.json with the chat template.
/// @param notices  receives a notice if the file has no tokenizer that can be written
/// @throws Error(BadInput)  for metadata of a wrong type
void tokenizer_from_gguf(const ModelFiles& files,
                         const std::string& directory,
                         std::vector<std::string>& notices);

}  // namespace engine

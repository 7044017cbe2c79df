// Writes the tokenizer of a GGUF file as the files of a Hugging Face directory.
#pragma once

#include <string>
#include <vector>

namespace engine {

class GgufFile;

/// Writes tokenizer.json (byte-level BPE) or tokenizer.model (SentencePiece's kind), and
/// tokenizer_config.json with the chat template.
/// @param notices  receives a notice if the file has no tokenizer that can be written
/// @throws Error(BadInput)  for metadata of a wrong type
void tokenizer_from_gguf(const GgufFile& file,
                         const std::string& directory,
                         std::vector<std::string>& notices);

}  // namespace engine

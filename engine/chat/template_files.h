// Finds the chat template of a model.
#pragma once

#include <string>

#include "engine/base/limits.h"
#include "engine/chat/chat_template.h"

namespace engine {

/// A model's chat template, and the texts of its begin and end tokens.
struct ChatFiles {
  ChatTemplate chat_template;  // its text is empty if the model has no template
  std::string bos, eos;
};

/// Reads the chat template and special tokens of a directory or a GGUF file; opens neither weights
/// nor tokenizer.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
ChatFiles read_chat_files(const std::string& path, const FileLimits& limits);

/// The template of a directory: the file chat_template.jinja, else `chat_template` of
/// tokenizer_config.json. The latter is a text, or a list of {"name", "template"} of which the
/// entry "default" is used. Empty if there is none.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
std::string read_chat_template(const std::string& directory, const FileLimits& limits);

}  // namespace engine

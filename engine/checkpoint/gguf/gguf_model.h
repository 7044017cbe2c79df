// Opens a model in a GGUF file.
#pragma once

#include <string>

#include "engine/checkpoint/opened_model.h"

namespace engine {

/// Opens a GGUF file, or the first part of a split one. open_model() calls it.
/// @throws Error(BadInput)  "file: key or tensor: found X, expected Y"
ModelFiles open_gguf_model(const std::string& path, const OpenOptions& options);

}  // namespace engine

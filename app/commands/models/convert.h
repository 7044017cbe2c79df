// `decoscope model convert`: converts between Hugging Face directories and GGUF files.
#pragma once

#include "app/cli/commands.h"

namespace app {

/// Converts the model `path` to `out`, a GGUF file if the name ends in ".gguf", else a directory.
/// Prints notices on standard error.
/// @throws Error(Usage)      if the format does not have this type, or if the output exists or
///                           overlaps with the input
/// @throws Error(Cancelled)  after Ctrl+C; no output is left
void convert_model(const ModelCommandOptions& options);

}  // namespace app

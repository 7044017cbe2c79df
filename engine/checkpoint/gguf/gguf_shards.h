// A model in GGUF files: one, or several that `llama-gguf-split` made ("m-00001-of-00003.gguf").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine {

/// True if a file's name ends in ".gguf" or its content begins with "GGUF"; false for a directory.
bool is_gguf_path(const std::string& path);

/// The name of a model in this file: without folder, ".gguf" and the number of a part.
std::string gguf_model_name(const std::string& path);

/// The paths of all parts of a model if `path` has the name of a first part, else `path` alone.
std::vector<std::string> gguf_part_paths(const std::string& path);

/// Opens a file and the parts that belong to it, which are expected in the same folder.
/// @param path  the only file, or the first part
/// @return  the parts in order; the first has the metadata
/// @throws Error(BadInput)  if a part is missing, or if a part's number or the number of tensors
///                          contradicts the metadata
std::vector<std::shared_ptr<const GgufFile>> open_gguf_files(const std::string& path,
                                                             const FileLimits& limits = {});

}  // namespace engine

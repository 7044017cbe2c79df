// generation_config.json: how the model's makers would have text generated.
#pragma once

#include <optional>
#include <string>

#include "engine/checkpoint/config_file.h"
#include "engine/base/limits.h"
#include "engine/checkpoint/model_files.h"

namespace engine {

/// Takes the end-of-sequence ids and the generation defaults, if the file has any, and says in the
/// notices what of the file is applied and what is not.
/// @throws Error(BadInput)  also for a default of no use, where they are applied
void read_generation_config(const std::string& path,
                            const FileLimits& limits,
                            GenerationUse use,
                            ConfigFile& file,
                            GenerationDefaults& defaults);

}  // namespace engine

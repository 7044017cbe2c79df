// Finds draft heads by the name of the model that they were trained for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/heads_files.h"

namespace engine {

/// The folders where heads are looked for: the bundled models and the data folder.
/// @param assets_dir  the folder of the bundled files
std::vector<std::string> heads_folders(const std::string& assets_dir);

/// The directory of the first heads of this kind, by folder and then by name, whose config.json
/// names this model as base_model_name_or_path (is_same_model()).
/// @param folders  folders of directories of heads; those that do not exist are skipped
/// @return  empty: there are none
std::string find_heads(std::string_view model,
                       HeadsKind kind,
                       const std::vector<std::string>& folders,
                       const FileLimits& limits = {});

}  // namespace engine

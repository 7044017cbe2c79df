// Finds draft heads and draft models by the name of the model that they were trained for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/heads_files.h"

namespace engine {

/// The folders where heads and drafts are looked for: the bundled models and the data folder.
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

/// The directory of the first draft model, by folder and then by name, that shares the embedding of
/// this model (is_same_model()).
/// @param folders  as for find_heads()
/// @return  empty: there is none
std::string find_draft(std::string_view model,
                       const std::vector<std::string>& folders,
                       const FileLimits& limits = {});

/// The draft model for a target: the one that its card names, else the one that find_draft() finds
/// in heads_folders().
/// @return  NAME or directory; empty: there is none
std::string draft_for(const ModelFiles& target,
                      const std::string& assets_dir,
                      const FileLimits& limits = {});

}  // namespace engine

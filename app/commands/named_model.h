// Names that mean two models: a bundled one, and a folder of that name in the current directory.
// Which of the two is used depends on the option alone; a note on standard error names both.
#pragma once

#include <string>

namespace app {

/// engine::find_model() under the assets: the bundled model first. Notes once that a folder of that
/// name is there too.
/// @throws Error(BadInput)
std::string model_folder(const std::string& name_or_path);
/// Notes that an option which takes a directory uses the folder, where a bundled model has its name.
void note_folder_is_used(const std::string& option, const std::string& folder);
/// Notes how a folder that was just written is named, where a bundled model has its name.
void note_written_name(const std::string& folder);

}  // namespace app

// Resolves ambiguous model names: a bundled model and a folder in the current directory may have
// the same name. Each option prefers one of the two, and a note on standard error names both.
#pragma once

#include <string>

namespace app {

/// engine::find_model() in the assets; prefers the bundled model. Prints a note once if a folder
/// has the same name.
/// @throws Error(BadInput)
std::string model_folder(const std::string& name_or_path);
/// Prints a note that an option uses the folder, if a bundled model has the same name.
void note_folder_is_used(const std::string& option, const std::string& folder);
/// Prints a note on how to name a folder just written, if a bundled model has the same name.
void note_written_name(const std::string& folder);

}  // namespace app

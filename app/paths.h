// Where the program's own files are.
#pragma once

#include <string>

namespace app {

/// The folder that holds models/, prompts/, recipes/: $DECOSCOPE_ASSETS, else beside the installed
/// program (../share/decoscope), else the source tree the program was built from.
/// @throws Error(BadInput)  listing where it was looked for
std::string assets_dir();

}  // namespace app

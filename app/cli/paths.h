// Where the program's own files are.
#pragma once

#include <string>

namespace app {

/// The folder that holds models/, prompts/, recipes/: $DECOSCOPE_ASSETS, else beside the installed
/// program (../share/decoscope), else the source tree the program was built from.
/// @throws Error(BadInput)  listing where it was looked for
std::string assets_dir();

/// The folder of the open sets, $DECOSCOPE_DATA; "" if it is not set.
std::string data_dir_of_environment();

}  // namespace app

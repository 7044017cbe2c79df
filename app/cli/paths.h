// Locates the program's data files.
#pragma once

#include <string>

namespace app {

/// The folder with models/, prompts/ and recipes/: $DECOSCOPE_ASSETS, else ../share/decoscope
/// beside the program, else the source tree it was built from.
/// @throws Error(BadInput)  not found; the message lists the folders searched
std::string assets_dir();

/// The folder of the open data sets, $DECOSCOPE_DATA; "" if not set.
std::string data_dir_of_environment();

}  // namespace app

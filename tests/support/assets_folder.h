// The folder of bundled models, prompts, recipes and trees, for the tests that read them.
#pragma once

#include <cstdlib>
#include <string>

/// $DECOSCOPE_ASSETS, as for the program, else that of the tree it was built from.
inline std::string assets_folder() {
  const char* named = std::getenv("DECOSCOPE_ASSETS");
  return named != nullptr ? named : DECOSCOPE_SOURCE_DIR "/assets";
}

// Finds the folder of bundled models, prompts, recipes and trees.
#pragma once

#include <cstdlib>
#include <string>

/// Returns $DECOSCOPE_ASSETS if it is set, as the program does; otherwise the assets of this source
/// tree.
inline std::string assets_folder() {
  const char* named = std::getenv("DECOSCOPE_ASSETS");
  return named != nullptr ? named : DECOSCOPE_SOURCE_DIR "/assets";
}

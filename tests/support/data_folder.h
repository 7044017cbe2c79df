// Finds the folder of the open data sets.
#pragma once

#include <cstdlib>
#include <string>

inline constexpr const char* kNoDataFolder = "no folder of open texts; set DECOSCOPE_DATA";

/// Returns $DECOSCOPE_DATA, or "" if it is not set; callers skip their test then.
inline std::string data_folder() {
  const char* named = std::getenv("DECOSCOPE_DATA");
  return named != nullptr ? named : "";
}

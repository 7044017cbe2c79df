// The folder of the open sets, for the tests that read them.
#pragma once

#include <cstdlib>
#include <string>

inline constexpr const char* kNoDataFolder = "no folder of open texts; set DECOSCOPE_DATA";

/// What $DECOSCOPE_DATA names; "" where it names none: the test is skipped then.
inline std::string data_folder() {
  const char* named = std::getenv("DECOSCOPE_DATA");
  return named != nullptr ? named : "";
}

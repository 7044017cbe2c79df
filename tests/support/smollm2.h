// Finds SmolLM2-135M-Instruct where scripts/get_model.sh puts it. Without it its tests are skipped.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

/// The path of the model's file; empty if it was not downloaded.
inline std::string smollm2_path() {
  const char *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  std::string folder = data && *data ? data : home ? std::string(home) + "/.local/share" : "";
  folder += "/decoscope/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  std::error_code error;
  return std::filesystem::is_regular_file(folder, error) ? folder : "";
}

/// Skips a test without the model.
#define NEEDS_SMOLLM2()       \
  if (smollm2_path().empty()) \
  GTEST_SKIP() << "no SmolLM2: `scripts/get_model.sh smollm2` downloads it"

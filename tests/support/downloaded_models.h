// Finds the models that scripts/get_model.sh downloads. Without a model its tests are skipped.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

/// The path of a downloaded file; empty if it is not there.
inline std::string downloaded(const std::string& name) {
  const char *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  const std::string folder = data && *data ? data : home ? std::string(home) + "/.local/share" : "";
  const std::string path = folder + "/decoscope/models/" + name;
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path : "";
}

/// The path of SmolLM2-135M-Instruct; empty if it was not downloaded.
inline std::string smollm2_path() {
  return downloaded("SmolLM2-135M-Instruct.Q4_1.gguf");
}

/// Skips a test without the model.
#define NEEDS_SMOLLM2()       \
  if (smollm2_path().empty()) \
  GTEST_SKIP() << "no SmolLM2: `scripts/get_model.sh smollm2` downloads it"

// Small models as Hugging Face directories, each with the GGUF file that llama.cpp's converter made of it
// (tests/fixtures/make_gguf_fixtures.py).
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine::test {

/// The folder with NAME/config.json, NAME/model.safetensors and NAME/model.gguf.
inline const std::string kGgufFixtures = DECOSCOPE_SOURCE_DIR "/tests/fixtures/gguf";

/// The names of the models, sorted.
inline std::vector<std::string> gguf_fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGgufFixtures))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// Opens a model that may lack a tokenizer.
inline ModelFiles open_without_tokenizer(const std::string& path) {
  return open_model(path, {.needs_tokenizer = false});
}

}  // namespace engine::test

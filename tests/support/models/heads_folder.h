// Random draft heads on disk. They guess badly and change no token.
#pragma once

#include <unistd.h>
#include <filesystem>
#include <string>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"

namespace engine::test {

/// Random heads for the bundled target in a temporary folder.
class HeadsFolder {
 public:
  HeadsFolder(HeadsKind kind, int n_heads)
      : path_(std::filesystem::temp_directory_path() /
              ("decoscope_" + std::string(name_of(kind)) + std::to_string(getpid()))) {
    const ModelConfig target = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target").config;
    HeadsConfig config;
    config.kind = kind;
    config.base = "demo-target";
    config.n_heads = n_heads;
    config.dim = target.dim;
    config.vocab_size = target.vocab_size;
    config.hidden_dim = target.hidden_dim;
    config.n_attention_heads = target.n_heads;
    write_heads(path_, config, *random_heads(config, 4), kernels::DType::BF16);
  }
  ~HeadsFolder() { std::filesystem::remove_all(path_); }
  HeadsFolder(const HeadsFolder&) = delete;
  HeadsFolder& operator=(const HeadsFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace engine::test

// Random draft heads on disk. Their guesses are bad, but the decoded tokens do not depend on them.
#pragma once

#include <string>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "tests/support/files.h"

namespace engine::test {

/// Random heads for the bundled target in a temporary folder.
class HeadsFolder {
 public:
  HeadsFolder(HeadsKind kind, int n_heads) : path_(folder_ / std::string(name_of(kind))) {
    const ModelConfig target = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target").config;
    HeadsConfig config;
    config.kind = kind;
    config.base = "demo-target";
    config.n_heads = n_heads;
    config.dim = target.dim;
    config.vocab_size = target.vocab_size;
    config.hidden_dim = target.hidden_dim;
    config.n_attention_heads = target.n_heads;
    write_heads(path(), config, *random_heads(config, 4), kernels::DType::BF16);
  }
  const std::string& path() const { return path_; }

 private:
  Folder folder_;
  std::string path_;
};

}  // namespace engine::test

// Fixtures that run the program through a shell in a temporary folder.
#pragma once

#include <sys/wait.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/files.h"
#include "tests/support/program.h"

struct Outcome {
  int code = -1;
  std::string out, err;
};

using engine::test::read_file;

/// Runs the program in a temporary folder.
class Cli : public testing::Test {
 protected:
  /// Runs a shell command; $DECOSCOPE is the program's path.
  Outcome shell(const std::string& line) const {
    const std::string out = folder + "/out", err = folder + "/err";
    const int status = std::system((std::string("DECOSCOPE=") + program_path() + " bash -c '" +
                                    line + "' >" + out + " 2>" + err + " </dev/null")
                                       .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
  }
  Outcome run(const std::string& arguments) const {
    const std::string out = folder + "/out", err = folder + "/err";
    const int status = std::system(
        (std::string(program_path()) + " " + arguments + " >" + out + " 2>" + err + " </dev/null")
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
  }
  static int lines(const std::string& text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  /// Writes the config.json of a tiny LLaMA model (2 layers, 64 wide). @return its path
  std::string tiny_config(int vocab_size = 128) const {
    const std::string path = folder + "/config.json";
    std::ofstream(path)
        << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
               "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": )"
        << vocab_size << R"(,
               "tie_word_embeddings": true, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
               "eos_token_id": 2, "bos_token_id": 1, "hidden_act": "silu"})";
    return path;
  }
  /// Vocabulary size of the bundled target model.
  static int target_vocab_size() {
    std::ifstream file(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json");
    return nlohmann::json::parse(file).at("vocab_size").get<int>();
  }
  /// Makes a random model with tiny_config(). @return its directory
  std::string tiny_model() const {
    const std::string out = folder + "/tiny";
    EXPECT_EQ(run("model random --config " + tiny_config() + " " + out).code, 0);
    return out;
  }

  engine::test::Folder temporary;
  const std::string folder = temporary.path();
};

/// Fails at once if the bundled model is missing.
class CliModel : public Cli {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
      FAIL() << "assets/models/demo-target is not in this tree";
    }
  }
};

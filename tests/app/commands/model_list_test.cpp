// `model list`, and models given by name.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"
#include "tests/support/downloaded_models.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class CliModelList : public CliModel {
 protected:
  void SetUp() override {
    CliModel::SetUp();
    fs::create_directories(folder + "/models/tiny-one");
    fs::rename(tiny_model(), folder + "/models/tiny-one");
    write("models/tiny-one/README.md", "---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n");
    write("models/cut.gguf", "GGUF\3");
    write("hub/models--org--small/snapshots/a/config.json", "{");
    write("hub/models--org--small/snapshots/a/model.safetensors", "");
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder + "/" + path).parent_path());
    std::ofstream(folder + "/" + path) << text;
  }
  /// Runs the program where these models are the only ones.
  Outcome with_models(const std::string& arguments) const {
    return shell("DECOSCOPE_MODELS=" + folder + "/models $DECOSCOPE " + arguments);
  }
  /// The same with a Hugging Face cache, and no other model of this user.
  Outcome with_hub(const std::string& arguments) const {
    return shell("unset DECOSCOPE_MODELS_ONLY; HOME=" + folder +
                 " XDG_DATA_HOME= XDG_CACHE_HOME= OLLAMA_MODELS= LLAMA_CACHE= HF_HOME= "
                 "HF_HUB_CACHE=" +
                 folder + "/hub $DECOSCOPE " + arguments);
  }
  static json model_in(const Outcome& listed, const std::string& name) {
    const json document = json::parse(listed.out);
    for (const json& model : document.at("models"))
      if (model.at("name") == name) return model;
    return {};
  }
};

TEST_F(CliModelList, found_and_bundled_models_are_described) {
  const Outcome listed = with_models("model list --json");
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(json::parse(listed.out).at("models").at(0).at("name"), "demo-target");
  EXPECT_EQ(model_in(listed, "demo-target").at("source"), "bundled");
  const json tiny = model_in(listed, "tiny-one");
  EXPECT_EQ(tiny.at("path"), folder + "/models/tiny-one");
  EXPECT_EQ(tiny.at("source"), "DECOSCOPE_MODELS");
  EXPECT_EQ(tiny.at("architecture"), "llama");
  EXPECT_EQ(tiny.at("licence"), "apache-2.0");
  EXPECT_EQ(tiny.at("context"), 512);
  EXPECT_GT(tiny.at("bytes"), tiny.at("parameters"));
  EXPECT_EQ(tiny.at("unavailable"), nullptr);
  EXPECT_THAT(model_in(listed, "cut").at("unavailable").get<std::string>(), HasSubstr("cut.gguf"));
  EXPECT_THAT(with_models("model list").out,
              AllOf(HasSubstr("cannot be used: "),
                    HasSubstr("smollm2-draft (bundled): a draft of SmolLM2-135M-Instruct.Q4_1")));
}

TEST_F(CliModelList, hub_cache_is_listed) {
  const Outcome listed = with_hub("model list --json");
  ASSERT_EQ(listed.code, 0) << listed.err;
  const json small = model_in(listed, "hf:org/small");
  EXPECT_EQ(small.at("source"), "Hugging Face cache");
  EXPECT_THAT(small.at("unavailable").get<std::string>(), HasSubstr("config.json"));
  EXPECT_EQ(model_in(listed, "tiny-one"), json());
}

TEST_F(CliModelList, name_or_its_unique_part_names_a_model) {
  for (const std::string name : {"tiny-one", "TINY"}) {
    const Outcome info = with_models("model info --json " + name);
    ASSERT_EQ(info.code, 0) << info.err;
    EXPECT_EQ(json::parse(info.out).at("path"), folder + "/models/tiny-one");
  }
  const Outcome broken = with_hub("model info hf:org/small");
  EXPECT_EQ(broken.code, 3);
  EXPECT_THAT(broken.err, HasSubstr("hub/models--org--small/snapshots/a/config.json"));
}

TEST_F(CliModelList, unknown_and_ambiguous_names_are_refused) {
  write("models/tiny-two.gguf", "GGUF");
  const Outcome two = with_models("model info tiny");
  EXPECT_EQ(two.code, 2);
  EXPECT_EQ(lines(two.err), 1);
  EXPECT_THAT(two.err, HasSubstr("tiny-one, tiny-two"));
  const Outcome misspelt = with_models("model info tinny-one");
  EXPECT_EQ(misspelt.code, 3);
  EXPECT_THAT(misspelt.err, HasSubstr("did you mean tiny-one?"));
  EXPECT_THAT(with_models("model info hf:org/none").err,
              HasSubstr("`hf download org/none` fetches it"));
  EXPECT_THAT(with_models("model info ollama:none").err,
              HasSubstr("`ollama pull none` fetches it"));
  EXPECT_THAT(with_models("model info smollm2").err,
              HasSubstr("`scripts/get_model.sh smollm2` downloads it"));
}

TEST_F(CliModelList, smollm2_is_described) {
  NEEDS_SMOLLM2();
  const std::string folder_of_it = fs::path(smollm2_path()).parent_path().string();
  const Outcome listed =
      shell("DECOSCOPE_MODELS=" + folder_of_it + " $DECOSCOPE model list --json");
  const json model = model_in(listed, "SmolLM2-135M-Instruct.Q4_1");
  EXPECT_EQ(model.at("unavailable"), nullptr);
  EXPECT_EQ(model.at("bytes"), 98'362'432);
  EXPECT_EQ(model.at("type"), "Q4_1");
  EXPECT_EQ(model.at("architecture"), "llama");
  EXPECT_EQ(model.at("parameters"), 134'515'008);
  EXPECT_EQ(model.at("context"), 8192);
  EXPECT_EQ(model.at("licence"), "apache-2.0");
}

}  // namespace

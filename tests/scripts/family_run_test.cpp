// Trains a whole family from random weights with the program itself, by recipes that take seconds
// (assets/recipes/small). The training is killed and resumed; the family is measured against the gates and
// installed.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/script_fixture.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::rows_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kModels = {"demo-target", "demo-draft", "demo-medusa",
                                          "demo-chimera", "demo-cllm"};

class SmallFamily : public test::ScriptFixture {
 protected:
  static constexpr const char* kSettings =
      "DECOSCOPE_PROGRAM=" DECOSCOPE_PROGRAM " DECOSCOPE_FAMILY_RECIPES=" DECOSCOPE_SOURCE_DIR
      "/assets/recipes/small DECOSCOPE_FAMILY_SCORES=1 DECOSCOPE_DATA= ";

  int trained() const { return code_of(kSettings, "train_family.sh"); }

  /// Starts the script and kills it with all its children when the target has a checkpoint.
  void killed_in_the_target() const {
    const std::string script =
        "set -m; " + std::string(kSettings) + DECOSCOPE_SOURCE_DIR "/scripts/train_family.sh " +
        out() + " >/dev/null 2>&1 & until [ -s " + out() +
        "/demo-target/checkpoint.bin ]; do kill -0 $! || exit 1; sleep 0.02; done; kill -9 -- -$!";
    ASSERT_EQ(WEXITSTATUS(std::system(("bash -c '" + script + "'").c_str())), 0);
    ASSERT_FALSE(fs::exists(out() + "/demo-target/.done")) << "the target had finished";
  }

  /// Races the target with its draft and heads.
  /// @return  each lane, and true if its tokens equal those of `ar`
  std::vector<std::pair<std::string, bool>> race() const {
    const std::string printed = out() + ".race";
    const std::string command = DECOSCOPE_PROGRAM " compare --model " + out() +
                                "/demo-target --decoders ar,speculative,medusa,chimera --prompt "
                                "'Question:' --max-tokens 24 --json > " +
                                printed;
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::vector<std::pair<std::string, bool>> lanes;
    const json document = json::parse(read(printed));
    for (const json& lane : document["results"])
      lanes.emplace_back(lane["lane"], lane["identical_to_ar"] == true);
    return lanes;
  }
};

TEST_F(SmallFamily, has_the_same_bits_after_a_kill) {
  killed_in_the_target();
  ASSERT_EQ(trained(), 0) << errors();
  EXPECT_THAT(errors(), Not(HasSubstr("train_family.sh: tokenizer,"))) << "it was finished";
  for (const char* stage :
       {"demo-target,", "demo-draft,", "texts,", "tree-medusa,", "demo-cllm,", "scores-demo-cllm,"})
    EXPECT_THAT(errors(), HasSubstr(std::string("train_family.sh: ") + stage));
  std::vector<std::string> timed;
  for (const auto& cells : rows_of(read(out() + "/demo-target/README.md")))
    if (cells.size() == 2) timed.push_back(cells[0]);
  EXPECT_THAT(timed, ElementsAre("stage", "tokenizer", "demo-target", "scores-demo-target"));
  EXPECT_THAT(read(out() + "/demo-draft/README.md"), HasSubstr("trained on generated texts only"))
      << "the target's card was found";
  EXPECT_THAT(race(), ElementsAre(std::pair("ar", true), std::pair("speculative", true),
                                  std::pair("medusa", true), std::pair("chimera", true)));

  // A target this small misses gates, and its card says so.
  EXPECT_EQ(code_of(std::string(kSettings) + "DECOSCOPE_GATES_COUNT=4 DECOSCOPE_GATES_FEW=4",
                    "family_gates.sh"),
            1);
  EXPECT_THAT(errors(), HasSubstr("missed: "));
  EXPECT_EQ(std::ranges::count(rows_of(read(out() + "/gates/gates.md")), 3u,
                               &std::vector<std::string>::size),
            15 + 3)
      << "gates of the target and of the consistency model";
  EXPECT_THAT(read(out() + "/demo-target/README.md"), HasSubstr("| MISSED |"));
  EXPECT_THAT(rows_of(read(out() + "/demo-draft/README.md")), Contains(Contains("arith")));
  EXPECT_EQ(code_of({}, "install_family.sh", out() + ".models"), 0) << errors();
  for (const std::string& model : kModels)
    EXPECT_TRUE(fs::exists(out() + ".models/" + model + "/README.md")) << model;

  // An uninterrupted run gives the same weights of every model.
  const std::string after_a_kill = out() + ".killed";
  fs::rename(out(), after_a_kill);
  ASSERT_EQ(trained(), 0) << errors();
  for (const std::string& model : kModels) {
    const std::string weights = "/" + model + "/model.safetensors";
    EXPECT_GT(fs::file_size(out() + weights), 1000u);
    EXPECT_EQ(read(out() + weights), read(after_a_kill + weights)) << model;
  }
}

}  // namespace

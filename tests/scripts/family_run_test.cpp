// A whole family made by the program itself, from random weights, by recipes of seconds
// (assets/recipes/small): killed on the way, gone on with, judged, installed.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/scripts/measuring_scripts.h"

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

class SmallFamily : public test::MeasuringScripts {
 protected:
  static constexpr const char* kSettings =
      "DECOSCOPE_PROGRAM=" DECOSCOPE_PROGRAM " DECOSCOPE_FAMILY_RECIPES=" DECOSCOPE_SOURCE_DIR
      "/assets/recipes/small DECOSCOPE_FAMILY_SCORES=1 DECOSCOPE_DATA= ";

  int trained() const { return code_of(kSettings, "train_family.sh"); }

  /// Begins with it and kills the script and all that it started once the target has a checkpoint.
  void killed_in_the_target() const {
    const std::string script =
        "set -m; " + std::string(kSettings) + DECOSCOPE_SOURCE_DIR "/scripts/train_family.sh " +
        out() + " >/dev/null 2>&1 & until [ -s " + out() +
        "/demo-target/checkpoint.bin ]; do kill -0 $! || exit 1; sleep 0.02; done; kill -9 -- -$!";
    ASSERT_EQ(WEXITSTATUS(std::system(("bash -c '" + script + "'").c_str())), 0);
    ASSERT_FALSE(fs::exists(out() + "/demo-target/.done")) << "it was not in the middle";
  }

  /// Of a race on the target by what belongs to it, by lane: whether it wrote what `ar` did.
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

TEST_F(SmallFamily, is_made_from_random_weights_and_through_a_kill_with_the_same_bits) {
  killed_in_the_target();
  ASSERT_EQ(trained(), 0) << told();
  EXPECT_THAT(told(), Not(HasSubstr("train_family.sh: tokenizer,"))) << "it was whole";
  for (const char* stage :
       {"demo-target,", "demo-draft,", "texts,", "tree-medusa,", "demo-cllm,", "scores-demo-cllm,"})
    EXPECT_THAT(told(), HasSubstr(std::string("train_family.sh: ") + stage));
  std::vector<std::string> timed;
  for (const auto& cells : rows_of(read(out() + "/demo-target/README.md")))
    if (cells.size() == 2) timed.push_back(cells[0]);
  EXPECT_THAT(timed, ElementsAre("stage", "tokenizer", "demo-target", "scores-demo-target"));
  EXPECT_THAT(read(out() + "/demo-draft/README.md"), HasSubstr("No text of anyone else was read."))
      << "nor by its target, whose card was found";
  EXPECT_THAT(race(), ElementsAre(std::pair("ar", true), std::pair("speculative", true),
                                  std::pair("medusa", true), std::pair("chimera", true)));

  // So small a target misses what is asked of one, and its card says so.
  EXPECT_EQ(code_of(std::string(kSettings) + "DECOSCOPE_GATES_COUNT=4 DECOSCOPE_GATES_FEW=4",
                    "family_gates.sh"),
            1);
  EXPECT_THAT(told(), HasSubstr("missed: "));
  EXPECT_EQ(std::ranges::count(rows_of(read(out() + "/gates/gates.md")), 3u,
                               &std::vector<std::string>::size),
            15 + 3)
      << "a target's and a consistency model's";
  EXPECT_THAT(read(out() + "/demo-target/README.md"), HasSubstr("| MISSED |"));
  EXPECT_THAT(rows_of(read(out() + "/demo-draft/README.md")), Contains(Contains("arith")));
  EXPECT_EQ(code_of({}, "install_family.sh", out() + ".models"), 0) << told();
  for (const std::string& model : kModels)
    EXPECT_TRUE(fs::exists(out() + ".models/" + model + "/README.md")) << model;

  // Without a stop the same weights come out, of every model.
  const std::string through_a_kill = out() + ".killed";
  fs::rename(out(), through_a_kill);
  ASSERT_EQ(trained(), 0) << told();
  for (const std::string& model : kModels) {
    const std::string weights = "/" + model + "/model.safetensors";
    EXPECT_GT(fs::file_size(out() + weights), 1000u);
    EXPECT_EQ(read(out() + weights), read(through_a_kill + weights)) << model;
  }
}

}  // namespace

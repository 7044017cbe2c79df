// The bundled heads and the consistency model: their files are complete, belong to the target, and
// guess as trained.
#include <fstream>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliFamily : public CliModel {
 protected:
  /// Runs a race over five bundled prompts, one from each of five tasks. @return the summary of
  /// each lane
  std::map<std::string, json> race(const std::string& lanes,
                                   const std::string& more = "",
                                   int n_tokens = 48) const {
    const std::string prompts = folder + "/few.jsonl";
    std::ifstream bundled(DECOSCOPE_SOURCE_DIR "/assets/prompts/bundled.jsonl");
    std::ofstream few(prompts);
    std::string line;
    for (int i = 0; std::getline(bundled, line); i++)
      if (i % 4 == 0) few << line << "\n";
    few.close();
    const Outcome outcome =
        run("compare --decoders " + lanes + " --dtype bf16 --prompt-file " + prompts +
            " --max-tokens " + std::to_string(n_tokens) + " --json" + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::map<std::string, json> found;
    const json document = json::parse(outcome.out, nullptr, false);
    if (document.contains("summary"))
      for (const json& one : document["summary"]) found[one["lane"]] = one;
    return found;
  }
  void expect_exact(const std::map<std::string, json>& lanes) const {
    EXPECT_FALSE(lanes.empty());
    for (const auto& [lane, summary] : lanes) {
      EXPECT_EQ(summary["n"], 5) << lane;
      EXPECT_EQ(summary["identical"], 5) << lane << " against plain decoding by its model";
    }
  }
};

const std::string kDrawn = " --temperature 0.8 --seed 7";

TEST_F(CliFamily, trained_heads_give_ar_output_in_fewer_steps) {
  const auto greedy = race("ar,medusa,chimera", " --set tree=own");
  expect_exact(greedy);
  // Measured: 2.60 and 4.07.
  EXPECT_GE(greedy.at("medusa")["tokens_per_step"].get<double>(), 2.5);
  EXPECT_GE(greedy.at("chimera")["tokens_per_step"].get<double>(), 3.9);
  expect_exact(race("ar,medusa,chimera", kDrawn));
  expect_exact(race("ar,medusa,chimera", " --scale 4x2", 12));
}

TEST_F(CliFamily, the_consistency_model_converges_in_few_steps) {
  const std::string lanes = "ar@demo-cllm,jacobi@demo-cllm";
  // Measured: 3.67 with blocks; sliding 4.45 (AVX2), 4.56 or 4.68, depending on the instruction set.
  for (const auto& [refill, least] :
       {std::pair<std::string, double>{"block", 3.5}, {"slide", 4.4}}) {
    const std::string fixed = " --set block=16 --set refill=" + refill;
    const auto greedy = race(lanes, fixed);
    expect_exact(greedy);
    EXPECT_GE(greedy.at("jacobi@demo-cllm")["tokens_per_step"].get<double>(), least) << refill;
    expect_exact(race(lanes + ",lookahead@demo-cllm", " --set refill=" + refill + kDrawn));
    expect_exact(race(lanes, " --scale 4x2 --set refill=" + refill, 12));
  }
  const auto block_of_one = race(lanes, " --set block=1");
  expect_exact(block_of_one);
  EXPECT_EQ(block_of_one.at("jacobi@demo-cllm")["tokens_per_step"], 1.0);
}

}  // namespace

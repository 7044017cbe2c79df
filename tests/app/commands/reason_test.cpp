// `reason cot` for users: the reveal curve, the preset, the parts of the time.
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliCot : public CliModel {
 protected:
  json document(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_F(CliCot, the_reveal_curve_has_a_point_for_each_limit) {
  const std::string ask = "reason cot --count 3 --batch 3 --max-tokens 120 --reveal";
  const json found = document(ask + " --limits 8,30 --set window=5");
  EXPECT_EQ(found["n"], 3);
  EXPECT_EQ(found["complete"], true);
  ASSERT_EQ(found["points"].size(), 3u);
  EXPECT_EQ(found["points"][0]["limit"], 8);
  EXPECT_EQ(found["points"][1]["limit"], 30);
  EXPECT_TRUE(found["points"][2]["limit"].is_null());
  const json& first = found["points"][0];
  EXPECT_LE(first["truncated"]["rows"], 3 * 8);
  EXPECT_EQ(first["truncated"]["approximate_tokens"], 0);
  EXPECT_GT(first["fastcot"]["approximate_tokens"], 0);
  EXPECT_EQ(found["points"][2]["fastcot"]["n_correct"],
            found["points"][2]["truncated"]["n_correct"]);
  const Outcome words = run(ask + " --limits 8");
  ASSERT_EQ(words.code, 0) << words.err;
  EXPECT_NE(words.out.find("Truncated-CoT"), std::string::npos) << words.out;
  EXPECT_EQ(lines(words.out), 4) << words.out;
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  refused(ask + " --limits 121", "--max-tokens 120");
  refused(ask + " --decoder ar", "--reveal");
  refused("reason cot --limits 8", "--reveal");
}

TEST_F(CliCot, the_preset_sets_the_penalty_of_the_paper) {
  const std::string ask = "reason cot --count 1 --max-tokens 8 ";
  const json paper = document(ask + "--set preset=paper");
  EXPECT_NEAR(paper["repetition_penalty"].get<double>(), 1.2, 1e-6);
  EXPECT_EQ(paper["options"]["window"], "10");
  EXPECT_EQ(document(ask + "--set preset=paper --repetition-penalty 1")["repetition_penalty"], 1);
  EXPECT_EQ(document(ask)["repetition_penalty"], 1);
}

TEST_F(CliCot, the_time_is_split_into_its_parts) {
  const json found = document("reason cot --count 2 --max-tokens 40 --set window=5");
  double sum = 0;
  for (const auto& [part, seconds] : found["time_split"].items()) {
    EXPECT_GT(seconds, 0) << part;
    sum += seconds.get<double>();
  }
  EXPECT_EQ(found["time_split"].size(), 6u);
  EXPECT_NEAR(sum, found["seconds"], 1e-6);
  const Outcome words = run("reason cot --count 1 --max-tokens 8");
  EXPECT_NE(words.out.find("choice of tokens"), std::string::npos) << words.out;
}

}  // namespace

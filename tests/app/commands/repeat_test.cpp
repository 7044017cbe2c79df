// generate --repeat: runs of a recording are made again with the sizes that they chose.
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliRepeat : public CliModel {};

TEST_F(CliRepeat, a_rejection_run_repeats_from_its_recording) {
  for (const char* decoder : {"prompt-lookup", "mcsd", "medusa"}) {
    const std::string file = folder + "/" + decoder + ".pdrun";
    const Outcome first =
        run(std::string("generate --decoder ") + decoder +
            " --prompt \"Anna has 4 cups. Anna has\" --max-tokens 40 --temperature 0.8 --seed 9 "
            "--sampling rejection --json --record " +
            file);
    ASSERT_EQ(first.code, 0) << first.err;
    const json recorded = json::parse(first.out);
    EXPECT_FALSE(recorded.contains("identical_to_recording"));
    const Outcome again = run("generate --json --repeat " + file);
    ASSERT_EQ(again.code, 0) << again.err;
    const json repeated = json::parse(again.out);
    for (const char* field : {"tokens", "steps", "text", "decoder", "seed", "prompt_tokens"})
      EXPECT_EQ(repeated[field], recorded[field]) << decoder << " " << field;
    EXPECT_EQ(repeated["identical_to_recording"], true);
    EXPECT_EQ(repeated["steps_as_recorded"], true);
    const Outcome line = run("generate --repeat " + file + " --repeat-run 1");
    EXPECT_NE(line.err.find("same tokens and steps as recorded"), std::string::npos) << line.err;
  }
}

TEST_F(CliRepeat, refuses_other_settings_and_files) {
  const std::string a = folder + "/a.pdrun", b = folder + "/b.pdrun";
  ASSERT_EQ(run("generate --decoder ar --prompt Anna --max-tokens 4 --record " + a).code, 0);
  EXPECT_EQ(run("generate --repeat " + a + " --seed 3").code, 2);
  EXPECT_EQ(run("generate --repeat " + a + " --prompt Anna").code, 2);
  EXPECT_EQ(run("generate --repeat-run 1 --prompt Anna").code, 2);
  const Outcome no_run = run("generate --repeat " + a + " --repeat-run 2");
  EXPECT_EQ(no_run.code, 3);
  EXPECT_NE(no_run.err.find("no run 2"), std::string::npos) << no_run.err;
  const Outcome other = run("generate --repeat " + a + " --model demo-draft");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("demo-target"), std::string::npos) << other.err;
  std::ofstream(b) << "text";
  EXPECT_EQ(run("generate --repeat " + b).code, 3);
}

}  // namespace

// SmolLM2-135M-Instruct from its GGUF file: the prompts' ids and the greedy tokens in f32 are those of transformers 5.24
// (tests/peers/greedy_parity.py made the fixture), and lossless decoders, with the bundled draft model and heads too, emit the
// tokens of plain decoding. Skipped where scripts/get_model.sh has not put the model.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"
#include "tests/support/downloaded_models.h"

namespace {

using nlohmann::json;

class SmolLM2 : public CliModel {
 protected:
  json results(const std::string& arguments) const {
    const Outcome found = run(arguments + " --model " + smollm2_path() + " --json");
    EXPECT_EQ(found.code, 0) << found.err;
    return found.code == 0 ? json::parse(found.out) : json();
  }
  const std::string messages_ = DECOSCOPE_SOURCE_DIR "/assets/prompts/messages.jsonl";
};

TEST_F(SmolLM2, greedy_tokens_of_messages_are_those_of_transformers) {
  NEEDS_SMOLLM2();
  const json expected =
      json::parse(std::ifstream(DECOSCOPE_SOURCE_DIR "/tests/fixtures/smollm2/messages.json"));
  const json runs = results("generate --dtype f32 --max-tokens 48 --prompt-file " + messages_);
  ASSERT_EQ(runs.size(), expected.size());
  for (const json& run : runs) {
    const json& want = expected.at(run.at("id"));
    EXPECT_EQ(run.at("prompt_tokens"), want.at("prompt")) << run.at("id");
    EXPECT_EQ(run.at("tokens"), want.at("tokens")) << run.at("id");
  }
}

TEST_F(SmolLM2, lossless_decoders_emit_the_tokens_of_plain_decoding) {
  NEEDS_SMOLLM2();
  for (const char* sampling : {"", " --temperature 0.8 --seed 3"}) {
    const json race = results(
        "compare --decoders ar,jacobi,lookahead,prompt-lookup --max-tokens 24 --prompt-file " +
        messages_ + sampling);
    for (const json& lane : race.at("summary"))
      EXPECT_EQ(lane.at("identical"), lane.at("n")) << lane.at("lane") << sampling;
  }
}

/// The least tokens per step of decoders that use a bundled part for this model, on the messages.
TEST_F(SmolLM2, bundled_parts_draft_what_the_model_writes) {
  NEEDS_SMOLLM2();
  const std::map<std::string, double> least{{"speculative", 1.5}, {"mcsd", 1.5}, {"medusa", 1.3}};
  for (const char* dtype : {"", " --dtype bf16"}) {
    const json race = results(
        "compare --decoders ar,speculative,mcsd,medusa --max-tokens 32 --set gamma=3 --set "
        "k_config=2,1,1 --set tree=rows8 --prompt-file " +
        messages_ + dtype);
    for (const json& lane : race.at("summary")) {
      EXPECT_EQ(lane.at("identical"), lane.at("n")) << lane.at("lane") << dtype;
      if (const auto found = least.find(lane.at("lane").get<std::string>()); found != least.end())
        EXPECT_GE(lane.at("tokens_per_step").get<double>(), found->second) << lane.at("lane");
    }
  }
}

}  // namespace

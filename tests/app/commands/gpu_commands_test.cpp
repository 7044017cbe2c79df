// Every command that computes, on the emulated GPU: one small case each. Decoding, steps, training
// and faults are in gpu_test.cpp.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kThere = " --device cuda:emulated";

class CliOnGpu : public CliModel {
 protected:
  json document(const std::string& command) const {
    const Outcome outcome = run(command + kThere + " --json");
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
};

TEST_F(CliOnGpu, race_lanes_have_equal_tokens) {
  const json race = document(
      "compare --model demo-draft --decoders ar,jacobi,prompt-lookup --max-tokens 6 --ignore-eos "
      "--prompt Anna");
  ASSERT_EQ(race["results"].size(), 3u);
  for (const json& one : race["results"]) {
    EXPECT_EQ(one["device"], "cuda:emulated");
    EXPECT_EQ(one["tokens"], race["results"][0]["tokens"]);
    EXPECT_EQ(one["tokens"].size(), 6u);
  }
  EXPECT_EQ(race["machine"]["ops"], "cuda emulated");
  EXPECT_EQ(race["summary"][2]["identical"], 1);
}

TEST_F(CliOnGpu, chain_of_thought_equals_the_cpus) {
  const std::string ask =
      "reason cot --model demo-draft --task arith --count 1 --shots 0 --decoder ar --max-tokens 4 "
      "--dtype f32";
  const json there = document(ask);
  EXPECT_EQ(there["device"], "cuda:emulated");
  ASSERT_EQ(there["items"].size(), 1u);
  EXPECT_GT(there["tokens"], 0);
  const json here = json::parse(run(ask + " --device cpu --json").out);
  EXPECT_EQ(there["items"][0]["text"], here["items"][0]["text"]);
}

TEST_F(CliOnGpu, tree_of_thoughts_equals_the_cpus) {
  const std::string ask =
      "reason tot --model demo-draft --count 1 --depth 1 --thoughts 1 --beam 1 --temperature 0 "
      "--value-temperature 0 --dtype f32";
  const json there = document(ask);
  EXPECT_EQ(there["device"], "cuda:emulated");
  ASSERT_EQ(there["items"].size(), 1u);
  EXPECT_EQ(there["items"][0]["nodes"].size(), 1u);
  const json here = json::parse(run(ask + " --device cpu --json").out);
  EXPECT_EQ(there["items"][0]["text"], here["items"][0]["text"]);
}

TEST_F(CliOnGpu, model_scores_equal_the_cpus) {
  const std::string ask = "model score --model demo-draft --task arith --level 1 --count 1";
  const json there = document(ask + " --dtype f32");
  const json here = json::parse(run(ask + " --dtype f32 --device cpu --json").out);
  ASSERT_EQ(there["scores"].size(), 1u);
  EXPECT_GT(there["scores"][0]["tokens"], 0);
  for (const char* same : {"n", "n_correct", "n_ended", "tokens"})
    EXPECT_EQ(there["scores"][0][same], here["scores"][0][same]) << same;
}

// The command measures row costs on the device. It skips the check by memory bandwidth, whose loops run on
// the CPU and may not access a GPU's memory.
TEST_F(CliOnGpu, a_draft_tree_is_grown_from_measured_row_costs) {
  const std::string model = folder + "/least", heads = folder + "/heads";
  std::ofstream(folder + "/least.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
             "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
             "intermediate_size": 16, "vocab_size": 32, "max_position_embeddings": 256,
             "tie_word_embeddings": true, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
             "eos_token_id": 2, "bos_token_id": 1, "hidden_act": "silu"})";
  ASSERT_EQ(run("model random --config " + folder + "/least.json " + model).code, 0);
  ASSERT_EQ(run("model random --heads medusa --n-heads 2 --model " + model + " " + heads).code, 0);
  std::ofstream(heads + "/accuracies.json")
      << R"({"heads": [[0.8, 0.1, 0.05], [0.7, 0.1]], "prompts": 9, "measured_on": "by hand"})";
  const json grown = document("model tree " + heads + " --rows auto --model " + model);
  EXPECT_EQ(grown["paths"].size() + 1, grown["rows"].get<std::size_t>());
  EXPECT_GT(grown["costs"]["heads_ms"].get<double>(), 0);
  EXPECT_TRUE(grown["costs"]["disturbed"].is_null()) << grown["costs"];
  for (const json& row : grown["costs"]["rows"]) EXPECT_GT(row["ms"].get<double>(), 0);
}

TEST_F(CliOnGpu, matrix_products_are_measured_one_by_one) {
  const json found = document("bench kernels --rows 1 --repeat 1");
  EXPECT_EQ(found["machine"]["ops"], "cuda emulated");
  ASSERT_EQ(found["kernels"].size(), 5u);
  for (const json& one : found["kernels"]) EXPECT_GT(one["us"].get<double>(), 0);
}

TEST_F(CliOnGpu, cpu_probes_are_skipped_with_a_note) {
  const json found = document("bench probe");
  EXPECT_TRUE(found["read_gbps"].is_null());
  for (const char* dtype : {"f32", "bf16", "f16"})
    EXPECT_TRUE(found["gflops"][dtype].is_null()) << dtype;
  const Outcome words = run("bench probe" + kThere);
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_EQ(lines(words.out), 1) << words.out;
  EXPECT_EQ(words.out, found["reason"].get<std::string>() + "\n");
  EXPECT_THAT(words.out, AllOf(HasSubstr("cuda:emulated: the probes run on the CPU only"),
                               HasSubstr("`bench step`"), Not(HasSubstr("not measured"))));
}

}  // namespace

// Decoders with a draft model on the command line: choice of the draft, refusals, and the content
// of documents and recordings.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CliDraft : public CliModel {
 protected:
  /// The document of a run that must succeed.
  json document(const std::string& arguments) const {
    const Outcome found = run(arguments + " --json");
    EXPECT_EQ(found.code, 0) << found.err;
    return json::parse(found.out);
  }
  /// The trace of a run written to NAME.pdrun and NAME.json, both of which must be valid.
  json recorded_and_traced(const std::string& arguments, const std::string& name) const {
    const std::string record = name + ".pdrun", trace = name + ".json";
    EXPECT_EQ(run(arguments + " --record " + record + " --trace " + trace).code, 0);
    EXPECT_EQ(run("trace validate " + record).code, 0);
    EXPECT_EQ(run("trace validate " + trace).code, 0);
    return json::parse(read_file(trace));
  }
  void expect_refused(const std::string& arguments,
                      std::initializer_list<std::string> parts) const {
    const Outcome found = run(arguments);
    EXPECT_EQ(found.code, 2) << found.err;
    EXPECT_TRUE(found.out.empty());
    EXPECT_EQ(lines(found.err), 1) << found.err;
    for (const std::string& part : parts)
      EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
  }
};

TEST_F(CliDraft, the_bundled_draft_is_found_and_output_equals_ar) {
  for (const char* decoder : {"speculative --set gamma=4", "mcsd --set k_config=2,1,1"}) {
    for (const char* settings :
         {"", " --temperature 0.8 --seed 4", " --dtype f32", " --scale 4x1"}) {
      const json result =
          document("generate --decoder " + std::string(decoder) +
                   " --prompt \"Anna has 11 stickers.\" --max-tokens 40" + settings);
      EXPECT_TRUE(std::string(decoder).starts_with(result["decoder"].get<std::string>()));
      EXPECT_EQ(result["draft"], "demo-draft");
      EXPECT_EQ(result["identical_to_ar"], true) << settings;
      EXPECT_EQ(result["lossless"], true);
      EXPECT_GT(result["metrics"]["accepted"], 0) << settings;
      EXPECT_GE(result["metrics"]["draft_rows"], result["metrics"]["draft_forwards"]);
      EXPECT_GE(result["metrics"]["draft_forwards"], result["steps"].get<int>() - 1);
    }
  }
  EXPECT_FALSE(document("generate --prompt \"Anna\" --max-tokens 4").contains("draft"));
}

TEST_F(CliDraft, rejection_sampling_runs_with_every_rule_unchecked) {
  for (const char* rule : {"without", "with", "naive", "kseq"}) {
    const json result =
        document("generate --decoder mcsd --set k_config=2,2 --set rule=" + std::string(rule) +
                 " --sampling rejection --temperature 1 --prompt \"Anna has\" --max-tokens 30");
    EXPECT_TRUE(result["identical_to_ar"].is_null());
    EXPECT_EQ(result["lossless"], true);
    EXPECT_GT(result["metrics"]["proposed"], 0);
  }
  const std::string certain =
      "generate --decoder mcsd --set draft_temperature=0 --sampling rejection --temperature 1 "
      "--prompt \"Anna has\" --max-tokens 10";
  EXPECT_EQ(document(certain + " --set as_released=on")["lossless"], false);
  EXPECT_NE(run(certain + " --set as_released=on").err.find(", NOT lossless"), std::string::npos);
  EXPECT_EQ(run(certain).err.find("NOT lossless"), std::string::npos);
  EXPECT_NE(run(certain + " --check").err.find("from the same distribution"), std::string::npos);
  const std::string lost = run(certain + " --check --set as_released=on").err;
  EXPECT_NE(lost.find("from another distribution"), std::string::npos) << lost;
  const json greedy = document(
      "generate --decoder mcsd --set as_released=on --set draft_temperature=0 --prompt \"Anna\" "
      "--max-tokens 10");
  EXPECT_EQ(greedy["lossless"], true) << "without rejection sampling it has no effect";
}

TEST_F(CliDraft, a_race_marks_a_decoder_that_changes_the_distribution) {
  const std::string race =
      "compare --decoders ar,speculative,mcsd --set draft_temperature=0 --sampling rejection "
      "--temperature 1 --prompt \"Anna has\" --max-tokens 10 --set as_released=";
  const json lost = document(race + "on")["summary"], kept = document(race + "off")["summary"];
  ASSERT_EQ(lost.size(), 3u);
  for (std::size_t i = 0; i < 3; i++) {
    EXPECT_EQ(lost[i]["lossless"], lost[i]["decoder"] != "mcsd") << lost[i];
    EXPECT_EQ(kept[i]["lossless"], true) << kept[i];
  }
  EXPECT_THAT(run(race + "on").out, ContainsRegex("mcsd .*-, NOT lossless with these options"));
  EXPECT_THAT(run(race + "off").out, Not(HasSubstr("NOT lossless")));
  // If the race has no other decoder, nothing is reported about the distribution.
  const std::string alone = "compare --decoders ar,mcsd" + race.substr(race.find(" --set draft"));
  EXPECT_THAT(run(alone + "on").out, Not(HasSubstr("of the same distribution")));
  EXPECT_THAT(run(alone + "off").out, HasSubstr("of the same distribution"));
}

TEST_F(CliDraft, a_draft_model_may_be_named) {
  // A target used as its own draft is always accepted.
  const json itself = document(
      "generate --decoder speculative --draft demo-target --set gamma=3 --prompt \"Anna has\" "
      "--max-tokens 32 --ignore-eos");
  EXPECT_EQ(itself["draft"], "demo-target");
  EXPECT_EQ(itself["tokens_per_step"], 4.0);
  EXPECT_EQ(itself["metrics"]["acceptance_rate"], 1.0);
}

TEST_F(CliDraft, a_model_that_cannot_draft_is_refused_with_the_reason) {
  expect_refused("generate --decoder speculative --model demo-draft --prompt Anna",
                 {"speculative needs a draft model", "demo-draft names none", "--draft NAME|DIR"});
  expect_refused("generate --decoder ar --draft demo-draft --prompt Anna",
                 {"--draft demo-draft: not used by ar", "used by speculative, mcsd and seed"});
  expect_refused("compare --decoders ar,mcsd --model demo-draft --prompt Anna",
                 {"mcsd needs a draft model"});
  // Another vocabulary: 128 tokens.
  expect_refused("bench decode --decoder mcsd --draft " + tiny_model(),
                 {"mcsd", "tiny", "found 128 tokens",
                  std::to_string(target_vocab_size()) + " in the target's"});
  expect_refused("bench step --decoder mcsd",
                 {"apply to bench decode", "bench step --first-steps"});
  expect_refused("bench kernels --draft demo-draft", {"apply to bench decode"});
  expect_refused("bench step --set gamma=2", {"--set applies to bench decode"});
  expect_refused("bench decode --first-steps 2", {"--texts and --first-steps apply to bench step"});
  expect_refused("bench step --first-steps 2 --decoder jacobi", {"a draft model or draft heads"});
  const Outcome missing = run("generate --decoder mcsd --draft no-such-model --prompt Anna");
  EXPECT_EQ(missing.code, 3);
  EXPECT_NE(missing.err.find("no-such-model"), std::string::npos) << missing.err;
}

TEST_F(CliDraft, options_of_speculative_and_mcsd_are_checked) {
  const std::string help = run("generate --decoder mcsd --help").out;
  for (const char* part :
       {"--set k_config=auto", "1 to 64 each, separated by commas", "--set rule=without",
        "without|with|naive|kseq", "NOT lossless", "--set stop_below=0", "--draft NAME|DIR"})
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
  expect_refused("generate --decoder mcsd --set k_config=2,x --prompt Anna",
                 {"mcsd: k_config: found '2,x'", "whole numbers"});
  expect_refused("generate --decoder speculative --set gama=2 --prompt Anna",
                 {"did you mean gamma"});
}

TEST_F(CliDraft, a_tree_is_sized_to_the_machine) {
  const std::string mine = " --decoder mcsd --set k_config=auto --prompt \"Anna has 11 stickers.\"";
  for (const char* sampling : {"", " --temperature 0.8 --seed 3"}) {
    const json result = document("generate --check --max-tokens 60 --ignore-eos" + mine + sampling);
    EXPECT_EQ(result["identical_to_ar"], true) << sampling;
    EXPECT_GE(result["metrics"]["tree_tokens"], 0) << sampling;
    EXPECT_LE(result["metrics"]["tree_tokens"], 28) << sampling;
  }
  const json drawn =
      document("generate --sampling rejection --temperature 1 --max-tokens 20" + mine);
  EXPECT_GT(drawn["metrics"]["sized_steps"], 0);
  const json branch =
      document("generate --check --decoder seed --set k_config=auto --prompt Anna --max-tokens 20");
  EXPECT_EQ(branch["identical_to_ar"], true);
  EXPECT_THAT(run("generate --decoder mcsd --help").out, HasSubstr("separated by commas, or auto"));
}

TEST_F(CliDraft, compare_and_bench_decode_take_draft_options) {
  const json race = document(
      "compare --decoders ar,speculative,mcsd --set gamma=3 --set k_config=3,1 --prompt \"Anna "
      "has 11 stickers.\" --max-tokens 32");
  for (const json& summary : race["summary"]) EXPECT_EQ(summary["identical"], 1) << summary;
  const json bench = document(
      "bench decode --decoder speculative --set gamma=2 --repeat 2 --max-tokens 24 --context 16");
  EXPECT_EQ(bench["decoder"], "speculative");
  EXPECT_EQ(bench["draft"], "demo-draft");
  EXPECT_GT(bench["draft_weight_bytes"], 0);
  EXPECT_GE(bench["tokens_per_step"], 1.0);
}

TEST_F(CliDraft, reason_accepts_a_decoder_with_a_draft_model) {
  const std::string ask = "reason cot --task kb --count 4 --decoder ";
  const json ar = document(ask + "ar --batch 2");
  ASSERT_EQ(ar["items"].size(), 4u);
  for (const char* decoder :
       {"speculative --batch 2 --set gamma=3", "seed --set branches=2 --set k_config=1,1,1",
        "seed --set batch_verify=3 --set k_config=1,1,1"}) {
    const json drafted = document(ask + decoder);
    for (std::size_t i = 0; i < 4; i++) {
      EXPECT_EQ(drafted["items"][i]["text"], ar["items"][i]["text"]) << decoder;
      EXPECT_EQ(drafted["items"][i]["answer"], ar["items"][i]["answer"]) << decoder;
      EXPECT_LT(drafted["items"][i]["steps"], ar["items"][i]["steps"]) << decoder;
    }
    EXPECT_GT(drafted["schedule"]["accepted_of_verified"], 0) << decoder;
    EXPECT_EQ(drafted["schedule"]["target_busy"], drafted["target_busy"]) << decoder;
  }
}

TEST_F(CliDraft, the_prompts_of_a_file_become_seed_branches) {
  const std::string file = folder + "/prompts.jsonl";
  std::ofstream(file) << R"({"id": "a", "prompt": "Anna has 11 stickers."})"
                      << "\n"
                      << R"({"id": "b", "prompt": "USER: How many are 3 and 4? ASSISTANT:"})"
                      << "\n"
                      << R"({"id": "c", "prompt": "The", "seed": 5})"
                      << "\n";
  const std::string rest = " --max-tokens 24 --ignore-eos --prompt-file " + file;
  for (const char* sampling : {"", " --temperature 0.8"}) {
    const json traced = recorded_and_traced(
        "generate --decoder seed --set branches=2 --set k_config=1,1,1 --check" + rest + sampling,
        folder + "/seed" + std::to_string(std::string(sampling).size()));
    std::set<std::string> lanes;
    for (const json& event : traced["traceEvents"])
      if (event["name"] == "thread_name") lanes.insert(event["args"]["name"]);
    for (const char* lane : {"draft branch 0", "draft branch 1", "verify", "queue"})
      EXPECT_TRUE(lanes.contains(lane)) << lane;
    EXPECT_FALSE(lanes.contains("draft branch 2")) << "two branches serve three prompts";
    const json seed =
        document("generate --decoder seed --set branches=2 --set k_config=1,1,1" + rest + sampling);
    const json ar = document("generate --decoder ar" + rest + sampling);
    ASSERT_EQ(seed.size(), 3u);
    for (std::size_t i = 0; i < 3; i++) {
      EXPECT_EQ(seed[i]["id"], ar[i]["id"]);
      EXPECT_EQ(seed[i]["tokens"], ar[i]["tokens"]);
      EXPECT_EQ(seed[i]["identical_to_ar"], true);
      ASSERT_FALSE(seed[i]["speedup"].is_null());
      EXPECT_GT(seed[i]["speedup"], 0);
      EXPECT_EQ(seed[i]["speedup"], seed[0]["speedup"]) << "of the whole batch";
      EXPECT_LT(seed[i]["steps"], ar[i]["steps"]);
    }
  }
  const Outcome words = run("generate --decoder seed" + rest);
  EXPECT_EQ(words.out, run("generate --decoder ar" + rest).out);
  EXPECT_NE(words.err.find("3 prompts in "), std::string::npos) << words.err;
  EXPECT_NE(words.err.find("branches waited"), std::string::npos) << words.err;
}

TEST_F(CliDraft, drafters_without_processors_are_noted) {
  const std::string file = folder + "/prompts.jsonl";
  std::ofstream(file) << R"({"prompt": "Anna has"})"
                      << "\n"
                      << R"({"prompt": "Ben has"})"
                      << "\n";
  const std::string threads = std::to_string(std::thread::hardware_concurrency());
  const std::string seed = " --max-tokens 4 --prompt-file " + file +
                           " --set branches=2 --set overlap=always --set draft_threads=" + threads;
  const std::string note = "2 drafters use";
  for (const char* command : {"generate --decoder seed", "compare --decoders ar,seed",
                              "compare --decoders ar,seed --json"}) {
    const Outcome two = run(command + seed + " --set drafters=2");
    EXPECT_EQ(two.code, 0) << two.err;
    const std::size_t at = two.err.find(note);
    ASSERT_NE(at, std::string::npos) << two.err;
    EXPECT_EQ(two.err.find(note, at + 1), std::string::npos) << two.err;
    EXPECT_THAT(run(command + seed).err, Not(HasSubstr("drafters use"))) << "one drafter";
  }
  const Outcome reason = run("reason cot --task kb --count 2 --max-tokens 4 --decoder seed" +
                             seed.substr(seed.find(" --set")) + " --set drafters=2");
  EXPECT_THAT(reason.err, HasSubstr(note));
}

TEST_F(CliDraft, a_draft_whose_context_is_full_is_noted) {
  std::string config = read_file(tiny_config(target_vocab_size()));
  config.replace(config.find(": 512"), 5, ": 16");
  std::ofstream(folder + "/short.json") << config;
  const Outcome made = run("model random --config " + folder + "/short.json --tokenizer " +
                           DECOSCOPE_SOURCE_DIR "/assets/models/demo-target " + folder + "/short");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string rest = " --draft " + folder + "/short --prompt 'Anna has 3' --max-tokens 24 " +
                           "--ignore-eos --set gamma=2";
  for (const char* command :
       {"generate --decoder speculative --json", "compare --decoders ar,speculative --repeat 2"}) {
    const Outcome found = run(command + rest);
    EXPECT_EQ(found.code, 0) << found.err;
    EXPECT_THAT(found.err, HasSubstr("note: the draft model's context of 16 tokens is full"));
    EXPECT_EQ(found.err.find("is full"), found.err.rfind("is full")) << found.err;
  }
}

TEST_F(CliDraft, chosen_sizes_under_rejection_sampling_are_noted) {
  const std::string sampled =
      " --sampling rejection --temperature 1 --prompt 'Anna has' --max-tokens 8";
  for (const char* command : {"generate --decoder mcsd", "compare --decoders ar,mcsd"}) {
    EXPECT_THAT(run(command + sampled).err, HasSubstr("note: mcsd: sizes follow measured times"));
    EXPECT_THAT(run(command + sampled + " --set k_config=1,1").err, Not(HasSubstr("sizes follow")));
  }
}

TEST_F(CliDraft, seed_rounds_are_recorded_and_exported_as_trace_lanes) {
  const json traced = recorded_and_traced(
      "reason cot --task kb --count 3 --decoder seed --set branches=2", folder + "/seed");
  std::map<std::string, int> lanes, slices;
  for (const json& event : traced["traceEvents"]) {
    const std::string name = event["name"];
    if (name == "thread_name") lanes[event["args"]["name"]]++;
    if (event["ph"] == "X") slices[name]++;
  }
  for (const char* lane : {"target", "draft branch 0", "draft branch 1", "verify", "queue"})
    EXPECT_GT(lanes[lane], 0) << lane;
  EXPECT_GT(slices["draft branch 0"], 0);
  EXPECT_GT(slices["draft branch 1"], 0);
  EXPECT_GT(slices["forward branch 1"], 0);
}

TEST_F(CliDraft, recordings_and_traces_have_the_draft_and_its_tokens) {
  const json traced = recorded_and_traced(
      "generate --decoder speculative --set gamma=4 --prompt \"Anna has\" --max-tokens 24",
      folder + "/run");
  const std::string record = folder + "/run.pdrun";
  EXPECT_EQ(document("trace info " + record)["runs"][0]["draft"], "demo-draft");
  const std::string all = traced["metadata"].dump();
  EXPECT_NE(all.find("\"draft\":\"demo-draft\""), std::string::npos) << all;
  int n_proposed = 0;
  for (const json& event : traced["traceEvents"]) {
    if (event["name"] != "propose 4") continue;  // gamma
    n_proposed++;
    EXPECT_EQ(event["args"]["drafted"], 4);
    EXPECT_GT(event["dur"], 0);
  }
  EXPECT_GT(n_proposed, 0);
  const std::string table = folder + "/run.csv";
  EXPECT_EQ(run("trace convert " + record + " " + table).code, 0);
}

}  // namespace

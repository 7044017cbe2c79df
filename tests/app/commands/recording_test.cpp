// Recordings and traces on the command line: messages, content and conversion.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

TEST_F(CliModel, a_trace_reports_its_self_check) {
  const std::string record = folder + "/a.pdrun", all = folder + "/all.json";
  const Outcome made =
      run("generate --decoder jacobi --prompt 'Anna has' --max-tokens 20 --record " + record +
          " --trace " + all);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.err.find("all.json: "), std::string::npos) << made.err;
  EXPECT_NE(made.err.find(" events"), std::string::npos) << made.err;
  EXPECT_NE(made.err.find("checked: valid"), std::string::npos) << made.err;
}

TEST_F(CliModel, a_recording_reports_its_path_and_size) {
  const std::string record = folder + "/a.pdrun";
  const Outcome made = run("generate --prompt Anna --max-tokens 4 --record " + record);
  ASSERT_EQ(made.code, 0) << made.err;
  const json info = json::parse(run("trace info --json " + record).out);
  EXPECT_NE(made.err.find(record + ": recording of " + std::to_string(info["events"].get<int>()) +
                          " events, " + std::to_string(info["bytes"].get<int>()) + " bytes\n"),
            std::string::npos)
      << made.err << info["events"] << " " << info["bytes"];
}

TEST_F(CliModel, a_step_range_becomes_a_valid_smaller_trace) {
  const std::string record = folder + "/a.pdrun", all = folder + "/all.json",
                    part = folder + "/part.json";
  ASSERT_EQ(
      run("generate --prompt 'Anna has' --max-tokens 20 --ignore-eos --record " + record).code, 0);
  ASSERT_EQ(run("trace convert " + record + " " + all).code, 0);
  const Outcome converted =
      run("trace convert --run 1 --first-step 3 --last-step 5 " + record + " " + part);
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(run("trace validate " + part).code, 0);
  std::set<int> steps;
  const json trace = json::parse(read_file(part));
  for (const json& event : trace["traceEvents"]) {
    if (event.contains("args") && event["args"].contains("step"))
      steps.insert(event["args"]["step"].get<int>());
  }
  EXPECT_EQ(steps, (std::set<int>{3, 4, 5}));
  EXPECT_LT(read_file(part).size(), read_file(all).size());
  EXPECT_EQ(run("trace convert --run 99 " + record + " " + part).code, 2);
}

// TR11.
TEST_F(CliModel, a_recording_of_other_weights_reports_both_hashes) {
  const std::string recording = folder + "/a.pdrun", trace_file = folder + "/a.json";
  ASSERT_EQ(run("generate --prompt 'Anna has' --max-tokens 4 --record " + recording + " --trace " +
                trace_file)
                .code,
            0);
  const auto hash_of = [&](const std::string& model) {
    return json::parse(run("model info --json " + model).out)["weights_hash"].get<std::string>();
  };
  const std::string tiny = tiny_model();
  const std::string own = hash_of("demo-target"), other = hash_of(tiny);
  EXPECT_EQ(own.size(), 16u);
  EXPECT_NE(own, other);
  for (const std::string& file : {recording, trace_file}) {
    EXPECT_TRUE(json::parse(run("trace info --json " + file).out)["notices"].empty()) << file;
    const Outcome outcome = run("trace info --json --model " + tiny + " " + file);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json notices = json::parse(outcome.out)["notices"];
    ASSERT_EQ(notices.size(), 1u) << file;
    EXPECT_NE(notices[0].get<std::string>().find(own), std::string::npos) << notices;
    EXPECT_NE(notices[0].get<std::string>().find(other), std::string::npos) << notices;
  }
}

TEST_F(CliModel, a_recording_converts_to_a_valid_trace) {
  const std::string run_file = folder + "/a.pdrun", trace_file = folder + "/a.json";
  ASSERT_EQ(run("generate --decoder jacobi --prompt 'Anna has' --max-tokens 20 --record " +
                run_file + " --trace " + trace_file)
                .code,
            0);
  EXPECT_EQ(run("trace validate " + run_file).code, 0);
  EXPECT_EQ(run("trace validate " + trace_file).code, 0);
  EXPECT_EQ(run("trace convert " + run_file + " " + folder + "/b.json").code, 0);
  EXPECT_EQ(run("trace validate " + folder + "/b.json").code, 0);
  EXPECT_GT(read_file(folder + "/b.json").size(), 500u);
}

TEST_F(CliModel, a_recorded_comparison_is_a_race_with_equal_lanes) {
  std::ofstream(folder + "/prompts.jsonl") << R"({"id": "a", "prompt": "Anna has"})"
                                           << "\n";
  const std::string recording = folder + "/race.pdrun";
  const Outcome outcome =
      run("compare --decoders ar,lookahead --max-tokens 16 --repeat 2 --prompt-file " + folder +
          "/prompts.jsonl --record " + recording);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run("trace validate " + recording).code, 0);
  const json info = json::parse(run("trace info --json " + recording).out);
  EXPECT_EQ(info["runs"].size(), 4u) << info.dump();
  EXPECT_EQ(info["kinds"]["Agreement"], 2) << "one in each repeat: " << info.dump();
  ASSERT_EQ(run("trace convert " + recording + " " + folder + "/race.csv").code, 0);
  const std::string lanes = read_file(folder + "/race-lanes.csv");
  for (const char* row :
       {"1,1,A,1,0,,ar,", "2,1,B,1,0,,lookahead,", ",2,A,1,1,,ar,", ",2,B,1,1,,lookahead,"})
    EXPECT_NE(lanes.find(row), std::string::npos) << row << " in " << lanes;
}

TEST_F(CliModel, the_task_of_a_prompt_is_recorded) {
  std::ofstream(folder + "/prompts.jsonl") << R"({"id": "arith/1/test/4", "prompt": "Anna has"})"
                                           << "\n"
                                           << R"({"id": "b", "task": "write", "prompt": "The sun"})"
                                           << "\n";
  const std::string recording = folder + "/race.pdrun";
  ASSERT_EQ(run("compare --decoders ar,jacobi --max-tokens 8 --prompt-file " + folder +
                "/prompts.jsonl --record " + recording)
                .code,
            0);
  ASSERT_EQ(run("trace convert " + recording + " " + folder + "/race.csv").code, 0);
  const std::string lanes = read_file(folder + "/race-lanes.csv");
  for (const char* row : {",1,A,1,0,arith,ar,", ",1,B,1,0,arith,jacobi,", ",2,A,1,0,write,ar,"})
    EXPECT_NE(lanes.find(row), std::string::npos) << row << " in " << lanes;
}

TEST_F(CliModel, repeats_have_quartiles_and_the_load) {
  const std::string line =
      "compare --decoders ar,lookahead --max-tokens 16 --ignore-eos --repeat 3 --prompt Anna";
  const json document = json::parse(run(line + " --json").out);
  for (const json& lane : document["summary"]) {
    const json& repeats = lane["repeats"];
    EXPECT_EQ(repeats["n"], 3);
    for (const char* figure : {"tokens_per_second", "step_ms", "tokens_per_step", "speedup"}) {
      const json& of = repeats[figure];
      EXPECT_LE(of["q1"], of["median"]) << figure << repeats;
      EXPECT_LE(of["median"], of["q3"]) << figure << repeats;
    }
    EXPECT_DOUBLE_EQ(repeats["tokens_per_step"]["median"], lane["tokens_per_step"]);
    EXPECT_GE(repeats["load_average"], 0);
  }
  EXPECT_EQ(document["summary"][0]["repeats"]["speedup"]["median"], 1) << "ar against itself";
  const Outcome reported = run(line);
  EXPECT_NE(reported.out.find("median of 3 repeats (q1 to q3)\n"), std::string::npos)
      << reported.out;
  EXPECT_EQ(run("compare --decoders ar --max-tokens 4 --prompt Anna").out.find("median"),
            std::string::npos);
}

TEST_F(CliModel, a_recording_of_generate_equals_a_live_run) {
  const std::string recording = folder + "/a.pdrun", trace = folder + "/a.json";
  ASSERT_EQ(run("generate --decoder lookahead --prompt 'Anna has' --max-tokens 8 --check "
                "--record " +
                recording + " --trace " + trace)
                .code,
            0);
  const json kinds = json::parse(run("trace info --json " + recording).out)["kinds"];
  EXPECT_EQ(kinds["Agreement"], 1) << kinds;
  EXPECT_GE(kinds.value("Sampled", 0), 1) << kinds;
  const auto counts = [](const json& event) {
    return event["ph"] == "C" && event["name"] == "cpu_busy_percent";
  };
  const json events = json::parse(read_file(trace))["traceEvents"];
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), counts));
  ASSERT_EQ(run("trace convert " + recording + " " + folder + "/a.csv").code, 0);
  const std::string lanes = read_file(folder + "/a-lanes.csv");
  EXPECT_NE(lanes.find(",-1,length,"), std::string::npos) << lanes;  // agrees up to the end
}

TEST_F(CliModel, convert_writes_beside_the_recording_by_default) {
  const std::string recording = folder + "/a.pdrun";
  ASSERT_EQ(run("generate --prompt 'Anna has' --max-tokens 4 --record " + recording).code, 0);
  const Outcome outcome = run("trace convert --json " + recording);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["files"], json::array({folder + "/a.json"}));
  EXPECT_EQ(run("trace validate " + folder + "/a.json").code, 0);
}

TEST_F(CliModel, a_recording_is_described_on_standard_output) {
  const std::string recording = folder + "/a.pdrun";
  ASSERT_EQ(run("generate --prompt \"Anna has\" --max-tokens 4 --record " + recording).code, 0);
  ASSERT_EQ(run("trace convert " + recording + " " + folder + "/a.txt").code, 0);
  const Outcome described = shell("DISPLAY= $DECOSCOPE --describe " + recording);
  EXPECT_EQ(described.code, 0) << described.err;
  EXPECT_EQ(described.err, "");
  EXPECT_EQ(described.out, read_file(folder + "/a.txt"));
  EXPECT_NE(described.out.find("Step 0: "), std::string::npos) << described.out;
  EXPECT_EQ(run("--describe " + folder + "/none.pdrun").code, 3);
  std::ofstream(folder + "/text.pdrun") << "no recording";
  EXPECT_EQ(run("--describe " + folder + "/text.pdrun").code, 3);
  EXPECT_EQ(run("--describe " + folder + "/a.json").code, 2);
}

TEST_F(CliModel, export_writes_the_file_of_trace_convert) {
  const std::string recording = folder + "/a.pdrun";
  ASSERT_EQ(run("generate --prompt \"Anna has\" --max-tokens 4 --record " + recording).code, 0);
  for (const char* ending : {".md", ".txt", ".html"}) {
    const std::string exported = folder + "/b" + ending, converted = folder + "/c" + ending;
    const Outcome outcome =
        shell("DISPLAY= $DECOSCOPE --open " + recording + " --export " + exported);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("wrote " + exported), std::string::npos) << outcome.out;
    ASSERT_EQ(run("trace convert " + recording + " " + converted).code, 0);
    EXPECT_EQ(read_file(exported), read_file(converted));
    if (std::string(ending) == ".txt") continue;
    EXPECT_NE(outcome.err.find("has no prompts; --with-prompt"), std::string::npos) << outcome.err;
    EXPECT_EQ(read_file(exported).find("Anna has"), std::string::npos) << exported;
    const Outcome with = run("trace convert --with-prompt " + recording + " " + converted);
    EXPECT_NE(with.err.find("contains the text of the prompts"), std::string::npos) << with.err;
    EXPECT_NE(read_file(folder + "/c-2" + ending).find("Anna has"), std::string::npos);
    const Outcome asked = run("--open " + recording + " --with-prompt --export " + exported);
    EXPECT_NE(asked.err.find("contains the text of the prompts"), std::string::npos) << asked.err;
    EXPECT_EQ(read_file(folder + "/b-2" + ending), read_file(folder + "/c-2" + ending));
  }
  const Outcome page = run("trace convert --page-mb 1 " + recording + " " + folder + "/small.html");
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(run("trace convert --page-mb 1 " + recording + " " + folder + "/small.md").code, 2);
  const Outcome alone = run("--export " + folder + "/d.md");
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(lines(alone.err), 1) << alone.err;
  EXPECT_NE(alone.err.find("--open"), std::string::npos) << alone.err;
  EXPECT_EQ(run("--open " + recording + " --export " + folder + "/d.xyz").code, 2);
  for (const char* without : {"d.csv", "d.pdrun", "d.gif"})
    EXPECT_EQ(run("--open " + recording + " --with-prompt --export " + folder + "/" + without).code,
              2);
}

}  // namespace

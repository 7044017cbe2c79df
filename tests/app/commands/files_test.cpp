// Output files and pipes: bad ones are refused before any work, and a closed pipe ends the program
// quietly.
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"
#include "tests/support/request_data.h"

namespace {

using nlohmann::json;

// The model is missing, so the message shows that the file is checked first.
// IO03.
TEST_F(Cli, an_unwritable_output_is_refused_before_loading) {
  const std::string bad = folder + "/absent/a";
  for (const std::string command : {"generate", "compare"}) {
    for (const std::string& option : {"--trace " + bad + ".json", "--record " + bad + ".pdrun"}) {
      const Outcome outcome = run(command + " --model /nonexistent/model --prompt a " + option);
      EXPECT_EQ(outcome.code, 4) << outcome.err;
      EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
      EXPECT_NE(outcome.err.find(bad), std::string::npos) << outcome.err;
    }
  }
}

// The program refuses the extension before it opens the model, which is missing.
TEST_F(Cli, a_wrong_file_extension_is_refused_with_a_suggestion) {
  const auto refused = [&](const std::string& command, const std::string& option,
                           const std::string& path, const std::string& instead) {
    const Outcome outcome = run(command + " --model /nonexistent/model " + option + " " + path);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(option + ": found " + path), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("; try " + instead), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path)) << path;
  };
  const std::string at = folder + "/gen";
  for (const std::string command :
       {"generate --prompt a", "compare --prompt a", "reason cot", "reason tot"}) {
    refused(command, "--record", at + ".txt", at + ".pdrun");
    refused(command, "--record", at, at + ".pdrun");
    refused(command, "--trace", at + ".pdrun", at + ".json");
  }
  EXPECT_EQ(run("generate --model /nonexistent/model --prompt a --trace " + at + ".json.gz").code,
            3);
}

TEST_F(Cli, an_output_that_is_not_a_regular_file_is_refused) {
  int n = 0;
  for (const auto& [option, ending] : {std::pair("--trace ", ".json"), {"--record ", ".pdrun"}}) {
    for (const std::string make : {"ln -s /dev/full ", "mkfifo ", "mkdir "}) {
      const std::string stem = folder + "/odd" + std::to_string(++n), path = stem + ending;
      ASSERT_EQ(shell(make + path).code, 0);
      const Outcome outcome =
          run("generate --model /nonexistent/model --prompt a " + std::string(option) + path);
      EXPECT_EQ(outcome.code, 4) << outcome.err;
      EXPECT_NE(outcome.err.find(path + ": found a folder or device"), std::string::npos)
          << outcome.err;
      EXPECT_FALSE(std::filesystem::exists(stem + "-2" + ending)) << path;
    }
  }
}

// The program refuses the options before it opens the model and before it creates a file.
TEST_F(Cli, unsupported_decoder_options_are_refused_before_loading) {
  const std::string outputs = " --model /nonexistent/model --prompt a --json --record " + folder +
                              "/z.pdrun --trace " + folder + "/z.json";
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run(arguments + outputs);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const char* file : {"/z.pdrun", "/z.json"})
      EXPECT_FALSE(std::filesystem::exists(folder + file)) << arguments;
  };
  const std::string rejection = " --sampling rejection --temperature 1";
  refused("generate --decoder fastcot" + rejection, "fastcot cannot run with sampling=rejection");
  refused("compare --decoders ar,fastcot" + rejection, "or leave it out of --decoders");
  refused("compare --set form=textbook --set refill=slide", "nothing to slide");
  // With supported options the missing model is the only error.
  EXPECT_EQ(run("compare --decoders ar,lookahead" + rejection + outputs).code, 3);
  EXPECT_EQ(run("generate --decoder jacobi --sampling coupled" + outputs).code, 3);
}

TEST_F(Cli, the_check_for_writability_leaves_the_file_unchanged) {
  const std::string mine = folder + "/mine.json", absent = folder + "/absent.json";
  std::ofstream(mine) << "mine";
  for (const std::string& path : {mine, absent})
    EXPECT_EQ(run("generate --model /nonexistent/model --prompt a --trace " + path).code, 3);
  EXPECT_EQ(read_file(mine), "mine");
  EXPECT_FALSE(std::filesystem::exists(absent));
}

TEST_F(CliModel, an_existing_file_is_kept_and_the_new_name_is_reported) {
  const std::string mine = folder + "/a.json", record = folder + "/a.pdrun";
  std::ofstream(mine) << "mine";
  std::ofstream(record) << "mine";
  const std::string line = "generate --decoder jacobi --prompt Anna --max-tokens 4";
  const Outcome made = run(line + " --trace " + mine + " --record " + record);
  ASSERT_EQ(made.code, 0) << made.err;
  for (const std::string& path : {mine, record}) {
    EXPECT_EQ(read_file(path), "mine");
    EXPECT_NE(made.err.find("note: " + path + " exists; "), std::string::npos) << made.err;
  }
  for (const char* name : {"/a-2.json", "/a-2.pdrun"}) {
    EXPECT_NE(made.err.find(folder + name), std::string::npos) << made.err;
    EXPECT_EQ(run("trace validate " + folder + name).code, 0) << name;
  }
  const Outcome converted = run("trace convert --json " + folder + "/a-2.pdrun " + mine);
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(json::parse(converted.out)["files"][0], folder + "/a-3.json");
  EXPECT_EQ(read_file(mine), "mine");
}

TEST_F(CliModel, trace_info_is_a_table_and_trace_validate_a_line) {
  std::ofstream prompts(folder + "/prompts.jsonl");
  for (int i = 0; i < 8; i++) prompts << json{{"prompt", "Anna has"}}.dump() << "\n";
  prompts.close();
  const std::string record = folder + "/a.pdrun", trace = folder + "/a.json";
  ASSERT_EQ(run("compare --decoders ar,jacobi --max-tokens 4 --ignore-eos --prompt-file " + folder +
                "/prompts.jsonl --record " + record + " --trace " + trace)
                .code,
            0);
  const std::string text = run("trace info " + record).out;
  EXPECT_LT(lines(text), 30) << text;
  for (const std::string column : {"decoder  runs  steps  tokens  tokens/step  ", "events ",
                                   "\njacobi      8  ", "  ar  jacobi\n", ", 16 runs\n"})
    EXPECT_NE(text.find(column), std::string::npos) << column << "\n" << text;
  EXPECT_EQ(json::parse(run("trace info --json " + record).out)["runs"].size(), 16u);
  for (const std::string& file : {record, trace}) {
    const Outcome valid = run("trace validate " + file);
    EXPECT_TRUE(valid.out.starts_with(file + ": valid: ")) << valid.out;
    EXPECT_EQ(lines(valid.out), 1) << valid.out;
  }
  // The table of a trace: one lane per line, numbers aligned.
  const std::string kinds = run("trace info " + trace).out;
  for (const char* row : {"\nlane +slices  async ends  instants  counters  flow ends\n",
                          "\nall +[0-9]+ +[0-9]+ ", "\n[^\n]*target +[0-9]+\n"})
    EXPECT_TRUE(std::regex_search(kinds, std::regex(row))) << row << kinds;
  std::ofstream(trace) << R"({"traceEvents":[{"ph":"X","pid":1,"tid":0,"ts":1}]})";
  const Outcome broken = run("trace validate " + trace);
  EXPECT_EQ(broken.code, 3);
  EXPECT_NE(broken.out.find(": not valid: "), std::string::npos) << broken.out;
  EXPECT_NE(broken.out.find("\n  event 0: tid-zero: "), std::string::npos) << broken.out;
}

TEST_F(Cli, a_missing_file_is_bad_input_for_every_command) {
  for (const std::string command :
       {"generate --prompt-file", "compare --prompt-file", "data check", "data stats", "trace info",
        "trace validate", "trace convert", "train target --recipe", "train tokenizer --recipe",
        "model info", "model validate", "generate --prompt a --model", "bench step --model",
        "model random out --config"}) {
    const Outcome outcome = run(command + " " + folder + "/absent");
    EXPECT_EQ(outcome.code, 3) << command << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(folder + "/absent"), std::string::npos) << command << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
  }
}

// CL02.
TEST_F(Cli, a_closed_pipe_ends_the_program_quietly) {
  const Outcome outcome =
      shell("set -o pipefail; $DECOSCOPE data generate arith --count 1000000 | head -n 2");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(lines(outcome.out), 2) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

// Files are limited to one kilobyte: too little for the trace, enough for the table.
// IO01.
TEST_F(CliModel, results_are_printed_when_the_recording_disk_is_full) {
  for (const std::string command : {"compare --decoders ar", "generate --json"}) {
    const Outcome outcome = shell("trap \"\" XFSZ; ulimit -f 1; $DECOSCOPE " + command +
                                  " --prompt Anna --max-tokens 1 --trace " + folder + "/a.json");
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_NE(outcome.err.find("a.json"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find(command.starts_with("compare") ? "tokens/step" : "\"stop_reason\""),
              std::string::npos)
        << outcome.out;
    EXPECT_FALSE(std::filesystem::exists(folder + "/a.json"));
  }
}

TEST_F(CliModel, a_closed_pipe_loses_no_output_file) {
  const std::string trace = folder + "/a.json", pipe = folder + "/pipe";
  // The reader closes the pipe before the program starts.
  const Outcome outcome = shell(
      "mkfifo " + pipe + "; exec 3<>" + pipe + " 4>" + pipe +
      " 3<&-; $DECOSCOPE generate --prompt \"Anna has\" --max-tokens 40 --ignore-eos --trace " +
      trace + " >&4");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcome.err.find("pipe"), std::string::npos) << outcome.err;
  EXPECT_EQ(run("trace validate " + trace).code, 0);
}

TEST_F(Cli, data_generate_prints_lines_or_one_json_list) {
  const std::string line = "data generate arith --level 2 --count 3";
  const Outcome text = run(line);
  ASSERT_EQ(text.code, 0) << text.err;
  ASSERT_EQ(lines(text.out), 3) << text.out;
  const json list = json::parse(run(line + " --json").out);
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0], json::parse(text.out.substr(0, text.out.find('\n'))));
  EXPECT_EQ(json::parse(run("data generate arith --count 0 --json").out), json::array());
  EXPECT_EQ(run("data generate arithm --json").out, "");
}

TEST_F(CliModel, open_set_questions_are_a_prompt_file_with_a_checker) {
  std::filesystem::create_directory(folder + "/gsm8k");
  std::ofstream(folder + "/gsm8k/test.jsonl")
      << R"({"question": "A shelf holds 2 rows of 5 jars. How many?", "answer": "#### 10"})"
         "\n"
      << R"({"question": "Mia has 3 cups and buys 4. How many?", "answer": "#### 7"})"
         "\n"
      << R"({"question": "Of 9 eggs 2 break. How many are whole?", "answer": "#### 7"})"
         "\n";
  const std::string ask = "data generate gsm8k --split test --data " + folder;
  const Outcome second = run(ask + " --start 1 --count 1");
  ASSERT_EQ(second.code, 0) << second.err;
  const json record = json::parse(second.out);
  EXPECT_EQ(record["prompt"],
            "Question:\nMia has 3 cups and buys 4. How many?\nAnswer:\nLet's think "
            "step by step.\n");
  EXPECT_EQ(record["level"], 0);
  EXPECT_EQ(json::parse(run(ask + " --json --count 50").out).size(), 3u) << "there are no more";

  const std::string file = folder + "/asked.jsonl";
  ASSERT_EQ(shell("$DECOSCOPE " + ask + " > " + file).code, 0);
  EXPECT_EQ(run("data check " + file).code, 0);
  const json race = json::parse(
      run("compare --json --decoders ar,lookahead --max-tokens 6 --prompt-file " + file).out);
  ASSERT_EQ(race["results"].size(), 6u);
  EXPECT_EQ(race["results"][2]["id"], record["id"]);
}

TEST_F(Cli, requests_about_texts_are_a_prompt_file) {
  engine::test::write_request_data(folder);
  const std::string ask = "data generate writing --split train --data " + folder;
  const json all = json::parse(run(ask + " --json --count 100").out);
  ASSERT_GT(all.size(), 10u);
  EXPECT_LT(all.size(), 61u) << "60 claims";
  const json second = json::parse(run(ask + " --start 1 --count 1").out);
  EXPECT_EQ(second, all[1]);
  EXPECT_EQ(second["id"], "writing/train/1");
  EXPECT_NE(second["prompt"].get<std::string>().find(" can "), std::string::npos) << second;
  for (const json& unseen :
       json::parse(run("data generate writing --split test --json --data " + folder).out))
    for (const json& seen : all) EXPECT_NE(unseen["prompt"], seen["prompt"]);
  const std::string n = std::to_string(all.size());
  const Outcome past = run(ask + " --start " + n);
  EXPECT_EQ(past.code, 2);
  EXPECT_EQ(past.out, "");
  EXPECT_NE(past.err.find("--start: found " + n), std::string::npos) << past.err;
  EXPECT_NE(past.err.find("writing has " + n + " requests in train"), std::string::npos)
      << past.err;
  EXPECT_EQ(run(ask + " --count 0 --start " + n).code, 0);
  const std::string small = folder + "/small";
  std::filesystem::create_directories(small + "/creak");
  std::ofstream(small + "/creak/train.json")
      << R"({"sentence": "A cat can sleep.", "explanation": "It is.", "label": "true"})"
      << "\n";
  const Outcome empty = run("data generate writing --split test --data " + small);
  EXPECT_EQ(empty.code, 2);
  EXPECT_NE(empty.err.find("--split test: writing has no requests"), std::string::npos)
      << empty.err;
  const Outcome nowhere = shell("DECOSCOPE_DATA= $DECOSCOPE data generate rewriting");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--data DIR"), std::string::npos) << nowhere.err;
}

TEST_F(Cli, a_missing_open_set_or_split_is_wrong_usage) {
  const auto refused = [&](const Outcome& outcome, int code, const std::string& part) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  refused(shell("DECOSCOPE_DATA= $DECOSCOPE data generate gsm8k"), 2, "--data DIR");
  refused(run("data generate gsm8k --split dev --data " + folder), 2,
          "--split dev: gsm8k has train");
  refused(run("data generate humaneval --data " + folder), 2, "humaneval has no such part");
  refused(run("data generate gsm8k --split test --data " + folder), 3, "gsm8k/test.jsonl");
}

}  // namespace

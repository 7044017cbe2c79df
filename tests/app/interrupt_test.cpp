// Ctrl+C in the middle of each long command: it ends soon, with the code of what was cancelled, and
// prints what there is.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/record.h"
#include "tests/app/program.h"

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr int kCancelled = 6;
// A step takes milliseconds; the rest is for machines that are busy or check for data races. What
// is interrupted here would go on for minutes.
constexpr auto kSoon = 120s;

class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "decoscope_interrupt.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string prompts(int n) const {
    const std::string path = folder + "/prompts.jsonl";
    std::ofstream file(path);
    for (int i = 0; i < n; i++) {
      file << json{{"id", std::to_string(i)}, {"prompt", "Anna has " + std::to_string(i)}}.dump()
           << "\n";
    }
    return path;
  }
  static std::uintmax_t size_of(const std::string& path) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path, none);
    return none ? 0 : size;
  }

  std::string folder;
};

TEST_F(Interrupt, generate_prints_the_prompts_it_has_done) {
  constexpr int kPrompts = 100000;
  const std::string record = folder + "/a.pdrun";
  Program program({"generate", "--prompt-file", prompts(kPrompts), "--max-tokens", "8", "--json",
                   "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 200'000; }, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json done = json::parse(end.out);
  EXPECT_GT(done.size(), 0u);
  EXPECT_LT(done.size(), std::size_t{kPrompts});
  EXPECT_EQ(done[0]["identical_to_ar"], true);
}

// The check runs after the text: interrupted there, the text and its figures stay and nothing is
// said of AR.
TEST_F(Interrupt, the_comparison_with_ar_ends_too_and_claims_nothing) {
  const std::vector<std::string> common = {"generate", "--decoder",           "prompt-lookup",
                                           "--prompt", "Anna has 3 pens and", "--max-tokens",
                                           "200",      "--ignore-eos"};
  Program quick(common, folder);  // the same text, unscaled
  const std::string text = quick.wait(300s).out;
  ASSERT_GT(text.size(), 100u);
  std::vector<std::string> slow = common;
  slow.insert(slow.end(), {"--scale", "4x2", "--check"});
  Program program(slow, folder);
  ASSERT_TRUE(program.until([&] { return program.out().size() >= text.size(); }, 400s))
      << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  EXPECT_EQ(end.out, text);
  EXPECT_NE(end.err.find("tokens/step"), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("AR"), std::string::npos) << end.err;
}

TEST_F(Interrupt, compare_prints_the_table_of_the_prompts_so_far) {
  constexpr int kPrompts = 100000;
  const std::string record = folder + "/a.pdrun";
  Program program({"compare", "--decoders", "ar,lookahead", "--prompt-file", prompts(kPrompts),
                   "--max-tokens", "8", "--json", "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 200'000; }, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  const int n = document["summary"][1]["n"];
  EXPECT_GT(n, 0);
  EXPECT_LT(n, kPrompts);
  EXPECT_EQ(document["summary"][1]["identical"], n);
  EXPECT_EQ(document["stopped"], true);
}

TEST_F(Interrupt, compare_says_after_how_many_prompts_it_was_cancelled) {
  constexpr int kPrompts = 100000;
  const std::string record = folder + "/a.pdrun";
  Program program({"compare", "--decoders", "ar,lookahead", "--prompt-file", prompts(kPrompts),
                   "--max-tokens", "8", "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 200'000; }, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const std::size_t at = end.err.find("cancelled after ");
  ASSERT_NE(at, std::string::npos) << end.err;
  const int n = std::stoi(end.err.substr(at + 16));
  EXPECT_GT(n, 0);
  EXPECT_NE(end.err.find(std::to_string(n) + " of 100000 prompts"), std::string::npos) << end.err;
  EXPECT_NE(end.out.find(" " + std::to_string(n) + " prompts;"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("lookahead"), std::string::npos) << end.out;
}

TEST_F(Interrupt, compare_prints_no_empty_table) {
  const std::string record = folder + "/a.pdrun";
  Program program({"compare", "--prompt", "Anna has", "--decoders", "ar", "--scale", "4x2",
                   "--max-tokens", "1000", "--ignore-eos", "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 1'000; }, 400s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  EXPECT_EQ(end.out, "");
  EXPECT_NE(end.err.find("cancelled after 0 of 1 prompts"), std::string::npos) << end.err;
}

TEST_F(Interrupt, reason_tot_prints_the_trees_it_has_done) {
  const std::string record = folder + "/a.pdrun";
  Program program({"reason", "tot", "--count", "100000", "--depth", "1", "--thoughts", "2",
                   "--json", "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 300'000; }, 240s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  EXPECT_EQ(document["complete"], false);
  EXPECT_GT(document["n"], 0);
  EXPECT_EQ(document["n"], document["items"].size());
  for (const json& item : document["items"]) EXPECT_FALSE(item["answer"].empty()) << item;
}

TEST_F(Interrupt, data_check_calls_no_record_wrong_for_it) {
  const std::string path = folder + "/py.jsonl";
  constexpr int kRecords = 20000;
  {
    std::ofstream file(path);
    const std::string line =
        engine::to_json_line(*engine::task_generator("py").make(engine::Split::Train, 1, 0));
    for (int i = 0; i < kRecords; i++) file << line << "\n";
  }
  Program program({"data", "check", path, "--json"}, folder);
  program.until([] { return false; }, 2s);  // reading is done by then, checking never
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  EXPECT_EQ(document["stopped"], true);
  EXPECT_EQ(document["wrong"], 0) << document.dump();
  EXPECT_LT(document["records"], kRecords);
}

TEST_F(Interrupt, bench_step_prints_the_rounds_so_far) {
  // How long the probes before the rounds take differs; the signal must end both.
  for (const auto after : {1s, 4s, 16s, 64s}) {
    Program program(
        {"bench", "step", "--rows", "1,4", "--repeat", "100000", "--context", "16", "--json"},
        folder);
    program.until([] { return false; }, after);
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    ASSERT_EQ(end.code, kCancelled) << end.err;
    const json document = json::parse(end.out.empty() ? "{}" : end.out);
    if (!document.contains("rows") || document["rows"].empty()) continue;  // it was still probing
    EXPECT_EQ(document["stopped"], true);
    EXPECT_GT(document["rows"][0]["ms"], 0);
    return;
  }
  FAIL() << "no round was measured in the time given";
}

TEST_F(Interrupt, bench_decode_ends_with_what_it_has) {
  Program decode(
      {"bench", "decode", "--repeat", "100000", "--max-tokens", "8", "--context", "16", "--json"},
      folder);
  decode.until([] { return false; }, 4s);
  decode.interrupt();
  const ProgramEnd end = decode.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  if (end.out.empty()) return;  // it was still loading
  const json document = json::parse(end.out);
  EXPECT_EQ(document["stopped"], true);
  if (document["n"] == 0) {  // no token yet
    EXPECT_TRUE(document["tokens_per_second"].is_null()) << end.out;
  } else {
    EXPECT_GT(document["tokens_per_second"], 0);
  }
}

TEST_F(Interrupt, while_the_model_loads_there_is_nothing_to_print) {
  for (const std::string command : {"generate", "compare"}) {
    Program program({command, "--prompt", "Anna has", "--scale", "4x4", "--json"}, folder);
    // The weights are 250 MB: they are being read.
    ASSERT_TRUE(program.until([&] { return program.private_memory() > 100'000'000; }, 400s))
        << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    EXPECT_EQ(end.code, kCancelled) << end.err;
    EXPECT_EQ(end.out, "");
    EXPECT_NE(end.err, "");
  }
}

TEST_F(Interrupt, train_saves_what_it_has_and_says_how_to_go_on) {
  std::ofstream(folder + "/recipe.json")
      << R"({"name": "small", "mixture": {"arith": {"weight": 1}}, "model": {"layers": 1, "dim": 32,
             "hidden_dim": 64, "heads": 1, "max_seq_len": 64}, "context": 64, "batch_tokens": 256,
             "tokens": 4000000000, "checkpoint_minutes": 1000})";
  Program program({"train", "draft", "--recipe", folder + "/recipe.json", "--out", folder + "/out"},
                  folder);
  const auto stepping = [&] { return program.err().find("step ") != std::string::npos; };
  ASSERT_TRUE(program.until(stepping, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  EXPECT_NE(end.err.find("--resume"), std::string::npos) << end.err;
  EXPECT_FALSE(std::filesystem::is_empty(folder + "/out"));
}

}  // namespace

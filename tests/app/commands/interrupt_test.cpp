// Ctrl+C in the middle of each long command: the command ends soon with the exit code of a
// cancelled command, and prints its partial result.
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/model_files.h"
#include "engine/data/record.h"
#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/support/program.h"
#include "tests/support/streams.h"

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr int kCancelled = 6;
// A step takes milliseconds; the limit also allows for busy machines and ThreadSanitizer. The
// interrupted commands would run for minutes.
constexpr auto kSoon = 120s;

class Interrupt : public testing::Test {
 protected:
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

  /// Size of the largest file in a directory whose name starts with `name`.
  static std::uintmax_t begun(const std::string& directory, const std::string& name) {
    std::error_code none;
    std::uintmax_t largest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
      if (entry.path().filename().string().starts_with(name))
        largest = std::max(largest, size_of(entry.path()));
    }
    return largest;
  }

  engine::test::Folder temporary;
  const std::string folder = temporary.path();
};

TEST_F(Interrupt, generate_prints_the_finished_prompts) {
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

// The comparison runs after decoding. If it is interrupted, the program prints the output and its figures
// without a result of the comparison.
TEST_F(Interrupt, the_comparison_with_ar_ends_without_a_result) {
  const std::vector<std::string> common = {"generate", "--decoder",           "prompt-lookup",
                                           "--prompt", "Anna has 3 pens and", "--max-tokens",
                                           "200",      "--ignore-eos"};
  Program quick(common, folder);  // the same output, unscaled
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

TEST_F(Interrupt, compare_prints_the_table_so_far) {
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

TEST_F(Interrupt, compare_reports_the_number_of_finished_prompts) {
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

TEST_F(Interrupt, compare_leaves_out_an_interrupted_batch) {
  constexpr int kPrompts = 100000;
  const std::string record = folder + "/a.pdrun";
  Program program({"compare", "--decoders", "ar,seed", "--set", "branches=4", "--prompt-file",
                   prompts(kPrompts), "--max-tokens", "8", "--json", "--record", record},
                  folder);
  ASSERT_TRUE(program.until([&] { return size_of(record) > 200'000; }, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  EXPECT_EQ(document["stopped"], true);
  const int n = document["summary"][1]["n"];
  EXPECT_GT(n, 0);
  EXPECT_EQ(n % 4, 0);
  EXPECT_EQ(document["summary"][0]["n"], n);
  EXPECT_EQ(document["summary"][1]["identical"], n);
  EXPECT_EQ(document["results"].size(), 2u * static_cast<std::size_t>(n));
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

TEST_F(Interrupt, reason_tot_prints_the_finished_trees) {
  const std::string record = folder + "/a.pdrun";
  Program program({"reason", "tot", "--count", "300", "--depth", "1", "--thoughts", "2", "--json",
                   "--record", record},
                  folder);
  // A tree of two thoughts makes about 47,000 bytes.
  ASSERT_TRUE(program.until([&] { return size_of(record) > 80'000; }, 240s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  EXPECT_EQ(document["complete"], false);
  EXPECT_GT(document["n"], 0);
  EXPECT_EQ(document["n"], document["items"].size());
  for (const json& item : document["items"]) EXPECT_FALSE(item["answer"].empty()) << item;
}

TEST_F(Interrupt, data_check_counts_no_record_as_wrong) {
  const std::string path = folder + "/py.jsonl";
  constexpr int kRecords = 20000;
  {
    std::ofstream file(path);
    const std::string line =
        engine::to_json_line(*engine::task_generator("py").make(engine::Split::Train, 1, 0));
    for (int i = 0; i < kRecords; i++) file << line << "\n";
  }
  Program program({"data", "check", path, "--json"}, folder);
  program.until([] { return false; }, 2s);  // reading has finished by then, checking has not
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  const json document = json::parse(end.out);
  EXPECT_EQ(document["stopped"], true);
  EXPECT_EQ(document["wrong"], 0) << document.dump();
  EXPECT_LT(document["records"], kRecords);
}

TEST_F(Interrupt, bench_step_prints_the_rounds_so_far) {
  // The duration of the probes before the rounds varies; the signal must end both.
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
  FAIL() << "no round was measured within the time limit";
}

TEST_F(Interrupt, bench_decode_prints_partial_results) {
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

TEST_F(Interrupt, nothing_is_printed_while_the_model_loads) {
  for (const std::string command : {"generate", "compare"}) {
    Program program({command, "--prompt", "Anna has", "--scale", "4x4", "--json"}, folder);
    // The 250 MB of weights are being read.
    ASSERT_TRUE(program.until([&] { return program.private_memory() > 100'000'000; }, 400s))
        << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    EXPECT_EQ(end.code, kCancelled) << end.err;
    EXPECT_EQ(end.out, "");
    EXPECT_NE(end.err, "");
  }
}

TEST_F(Interrupt, an_unfinished_model_directory_is_removed) {
  const std::string config = folder + "/shape.json", out = folder + "/out";
  std::ofstream(config)
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
             "num_hidden_layers": 40, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 128,
             "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "eos_token_id": 2, "bos_token_id": 1})";
  const std::vector<std::vector<std::string>> commands = {
      {"model", "random", "--config", config, out},
      {"model", "scale", "demo-target", out, "--scale", "16x1"}};
  for (const std::vector<std::string>& command : commands) {
    Program program(command, folder);
    ASSERT_TRUE(program.until([&] { return begun(out, "model.safetensors.") > 1'000'000; }, 240s))
        << command[1] << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    EXPECT_EQ(end.code, kCancelled) << command[1] << end.err;
    EXPECT_EQ(end.out, "");
    EXPECT_NE(end.err.find("nothing was written to " + out), std::string::npos) << end.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << command[1];
  }
}

/// A model of 17 GB that uses no disk space: its weights are a hole in the file, read as zeros.
void write_hollow_model(const std::string& directory) {
  std::filesystem::create_directories(directory);
  const std::string config = directory + "/config.json";
  std::ofstream(config)
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
             "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 128,
             "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "eos_token_id": 2, "bos_token_id": 1})";
  json header;
  std::int64_t at = 0;
  for (const engine::TensorSpec& spec : engine::tensors_of(engine::read_model_config(config))) {
    std::int64_t n = 1;
    for (const std::int64_t dim : spec.shape) n *= dim;
    header[spec.name] = {
        {"dtype", "BF16"}, {"shape", spec.shape}, {"data_offsets", {at, at + 2 * n}}};
    at += 2 * n;
  }
  const std::string text = header.dump(), path = directory + "/model.safetensors";
  {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 8; i++) file.put(static_cast<char>(text.size() >> (8 * i)));
    file << text;
  }
  std::filesystem::resize_file(path, 8 + text.size() + static_cast<std::uintmax_t>(at));
}

TEST_F(Interrupt, model_info_is_printed_without_the_hash) {
  const std::string model = folder + "/hollow";
  write_hollow_model(model);
  const std::vector<std::vector<std::string>> commands = {
      {"model", "info", model, "--json"},
      {"model", "validate", model, "--json"},
      {"model", "validate", model, "--scan", "--json"}};
  for (const std::vector<std::string>& command : commands) {
    Program program(command, folder);
    ASSERT_TRUE(program.until([&] { return program.mapped_memory() > 400'000'000; }, 120s))
        << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    EXPECT_EQ(end.code, kCancelled) << end.err;
    const json document = json::parse(end.out);
    EXPECT_EQ(document["stopped"], true) << document;
    if (command[1] == "validate") {
      EXPECT_TRUE(document["valid"].is_null()) << document;
    } else {
      EXPECT_TRUE(document["weights_hash"].is_null()) << document;
      EXPECT_EQ(document["n_layers"], 32) << document;
    }
  }
}

TEST_F(Interrupt, an_interrupted_trace_conversion_leaves_no_file) {
  const std::string recording = folder + "/long.pdrun", out = folder + "/long.json";
  {
    engine::Recorder recorder(recording);
    recorder.push(engine::test::model_loaded());
    for (engine::RunId run = 1; run <= 600; run++) {
      for (engine::Event& event : engine::test::run_events({.run = run, .n_steps = 500}))
        recorder.push(std::move(event));
    }
    recorder.close();
  }
  const auto interrupted = [&](const std::vector<std::string>& command, const auto& sign) {
    Program program(command, folder);
    ASSERT_TRUE(program.until([&] { return sign(program); }, 240s)) << program.err();
    program.interrupt();
    const ProgramEnd end = program.wait(kSoon);
    EXPECT_EQ(end.code, kCancelled) << command[1] << end.err;
    EXPECT_EQ(end.out, "") << command[1];
    EXPECT_NE(end.err, "") << command[1];
  };
  const auto reading = [](const Program& program) { return program.bytes_read() > 8'000'000; };
  interrupted({"trace", "info", recording}, reading);
  interrupted({"trace", "validate", recording, "--json"}, reading);
  interrupted({"trace", "convert", recording, out},
              [&](const Program&) { return begun(folder, "long.json.") > 1'000'000; });
  EXPECT_EQ(begun(folder, "long.json"), 0u);
}

// SentencePiece cannot be stopped: the first signal ends the process during its training.
TEST_F(Interrupt, train_tokenizer_ends_during_training) {
  std::ofstream(folder + "/recipe.json")
      << R"({"name": "pieces", "mixture": {"arith": {"weight": 1}, "kb": {"weight": 1},
             "sql": {"weight": 1}, "py": {"weight": 1}}, "vocab_size": 1984, "sample_bytes": 5000000})";
  Program program(
      {"train", "tokenizer", "--recipe", folder + "/recipe.json", "--out", folder + "/out"},
      folder);
  const auto learning = [&] {
    return program.err().find("learning a vocabulary") != std::string::npos;
  };
  ASSERT_TRUE(program.until(learning, 240s)) << program.err();
  program.interrupt();
  EXPECT_EQ(program.wait(kSoon).code, kCancelled);
  EXPECT_FALSE(std::filesystem::exists(folder + "/out/tokenizer.model"));
}

TEST_F(Interrupt, train_medusa_keeps_the_written_outputs) {
  std::ofstream(folder + "/recipe.json")
      << R"({"name": "small", "heads_of": "medusa", "own_outputs": {"mixture": {"arith":
             {"weight": 1, "levels": [1, 0, 0]}}, "count": 1000000, "max_tokens": 4, "lanes": 2},
             "epochs": 1})";
  const std::string texts = folder + "/out/own_outputs.jsonl";
  Program program(
      {"train", "medusa", "--recipe", folder + "/recipe.json", "--out", folder + "/out"}, folder);
  const auto n_lines = [&] {
    std::ifstream file(texts);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  ASSERT_TRUE(program.until([&] { return n_lines() > 2; }, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  EXPECT_NE(end.err.find("--resume"), std::string::npos) << end.err;
  std::ifstream file(texts);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(Interrupt, train_saves_a_checkpoint_and_names_resume) {
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

TEST_F(Interrupt, train_cllm_keeps_the_collected_trajectories) {
  std::ofstream(folder + "/recipe.json")
      << R"({"name": "small", "mixture": {"arith": {"weight": 1}}, "prompts": 1000000, "lanes": 4,
             "max_new_tokens": 24, "epochs": 1})";
  Program program({"train", "cllm", "--recipe", folder + "/recipe.json", "--out", folder + "/out"},
                  folder);
  const auto collecting = [&] { return program.err().find(" answers, ") != std::string::npos; };
  ASSERT_TRUE(program.until(collecting, 120s)) << program.err();
  program.interrupt();
  const ProgramEnd end = program.wait(kSoon);
  EXPECT_EQ(end.code, kCancelled) << end.err;
  EXPECT_NE(end.err.find("--resume"), std::string::npos) << end.err;
  EXPECT_GT(std::filesystem::file_size(folder + "/out/trajectories.bin"), 100u);
  EXPECT_FALSE(std::filesystem::exists(folder + "/out/model.safetensors"));
}

}  // namespace

// Inputs of the command line: ranges, extreme numbers, files with a byte order mark, pipes, and
// unsupported models.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/decode/registry.h"
#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

const std::string kAssets = DECOSCOPE_SOURCE_DIR "/assets";

class CliInputs : public CliModel {
 protected:
  /// A small random model with the bundled tokenizer.
  std::string small_model() const {
    const std::string out = folder + "/small";
    const Outcome made = run("model random --config " + tiny_config(target_vocab_size()) +
                             " --tokenizer " + kAssets + "/models/demo-target " + out);
    EXPECT_EQ(made.code, 0) << made.err;
    return out;
  }
  /// A recording of one run of the small model.
  std::string recording(const std::string& model) const {
    const std::string out = folder + "/run.pdrun";
    const Outcome made = run("generate --model " + model +
                             " --prompt Anna --max-tokens 6 --ignore-eos --record " + out);
    EXPECT_EQ(made.code, 0) << made.err;
    return out;
  }
  void refused(const std::string& arguments, int code, const std::string& part) const {
    expect_refused(run(arguments), arguments, code, part);
  }
  static void expect_refused(const Outcome& outcome,
                             const std::string& what,
                             int code,
                             const std::string& part) {
    EXPECT_EQ(outcome.code, code) << what << ": " << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << what << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << what << ": " << outcome.err;
  }
};

TEST_F(CliInputs, steps_missing_from_a_recording_are_refused) {
  const std::string record = recording(small_model()), out = folder + "/part.json";
  const std::string convert = "trace convert " + record + " " + out;
  refused(convert + " --first-step 5 --last-step 3", 2, "found first 5 and last 3");
  refused(convert + " --first-step 1000", 2, "run 1 has steps 0 to 5");
  refused(convert + " --first-step 2147483647", 2, "run 1 has steps 0 to 5");
  refused(convert + " --run 9", 2, "run: found 9, expected one of 1");
  EXPECT_FALSE(std::filesystem::exists(out));
  for (const std::string other : {".csv", ".txt", ".pdrun"}) {
    const std::string to = "trace convert " + record + " " + folder + "/other" + other;
    refused(to + " --run 1", 2, "--run applies only to a trace");
    refused(to + " --first-step 2", 2, "--first-step or --last-step applies only to a trace");
    refused(to + " --with-prompt", 2, "--with-prompt applies only to a trace");
    refused(to + " --clock compute", 2, "--clock applies only to a trace");
    refused(to + " --by-time", 2, "--by-time applies only to an animation");
    refused(to + " --panel tree", 2, "--panel applies only to an animation");
  }
  EXPECT_EQ(run(convert + " --first-step 3 --last-step 1000").code, 0);
}

TEST_F(CliInputs, ranges_beyond_the_end_are_refused) {
  const std::string model = small_model();
  refused("data generate arith --start 9223372036854775807 --count 2", 2, "1125899906842624");
  refused("data generate arith --count 9223372036854775807", 2, "1125899906842624");
  EXPECT_EQ(lines(run("data generate arith --start 1125899906842624 --count 2").out), 2);
  refused("bench step --model " + model + " --context 2147483647", 4, "from 1 to 480");
  refused("bench step --model " + model + " --rows 1 --context 511", 4, "from 1 to 510");
  refused("bench decode --model " + model + " --context 512", 4, "from 1 to 511");
  refused("bench step --model " + model + " --rows ,", 2, "found none, expected numbers");
  ASSERT_EQ(shell("$DECOSCOPE data generate kb --count 2 > " + folder + "/two.jsonl").code, 0);
  const Outcome beyond =
      run("reason cot --model " + model + " --data " + folder + "/two.jsonl --start 5");
  EXPECT_EQ(beyond.code, 3) << beyond.err;
  EXPECT_EQ(lines(beyond.err), 1) << beyond.err;
}

/// Every option with an integer value, appended to a command that ends quickly without it.
std::vector<std::string> commands_with_numbers(const std::string& model,
                                               const std::string& record,
                                               const std::string& folder) {
  const std::string at = " --model " + model + " ", config = folder + "/config.json";
  const std::string generate = "generate --prompt Anna --max-tokens 4" + at;
  const std::string step = "bench step --rows 1 --repeat 1 --context 4" + at;
  const std::string cot = "reason cot --count 1 --max-tokens 4 --shots 0" + at;
  const std::string tot = "reason tot --count 1" + at;
  const std::string convert = "trace convert " + record + " " + folder + "/part.json ";
  const std::string compare = "compare --prompt Anna --decoders ar,jacobi --max-tokens 4" + at;
  const std::string heads = "model random --heads medusa" + at + folder + "/heads ";
  return {"generate --prompt Anna" + at + "--max-tokens",
          "generate --prompt Anna --max-tokens 4 --temperature 1" + at + "--top-k",
          generate + "--seed",
          generate + "--threads",
          compare + "--repeat",
          step + "--texts",
          step + "--first-steps 2 --new-prompt-tokens",
          step + "--first-steps",
          step + "--first-steps 2 --draft-forwards",
          "bench step --repeat 1 --context 4" + at + "--rows",
          "bench step --repeat 1 --rows 1" + at + "--context",
          "bench step --context 4 --rows 1" + at + "--repeat",
          "bench decode --repeat 1 --context 4" + at + "--max-tokens",
          "data generate arith --count 1 --start",
          "data generate arith --count 1 --level",
          "model score --task kb --level 1" + at + "--count",
          "model score --task kb --count 1" + at + "--level",
          "model random --config " + config + " " + folder + "/made --seed",
          heads + "--n-heads",
          "model tree demo-medusa --rows",
          "model info " + model + " --limit json_depth",
          "reason cot --max-tokens 4 --shots 0" + at + "--count",
          "reason cot --count 1 --shots 0" + at + "--max-tokens",
          cot + "--start",
          cot + "--level",
          cot + "--batch",
          cot + "--sample-seed",
          "reason cot --count 1 --max-tokens 4" + at + "--shots",
          "reason tot" + at + "--count",
          tot + "--start",
          tot + "--level",
          tot + "--actions",
          tot + "--depth",
          tot + "--thoughts",
          tot + "--beam",
          tot + "--batch",
          tot + "--seed",
          convert + "--run",
          convert + "--first-step",
          convert + "--last-step",
          "train target --recipe " + kAssets + "/recipes/tiny.json --threads"};
}

TEST_F(CliInputs, extreme_64_bit_numbers_cause_no_internal_error) {
  const std::string model = small_model(), record = recording(model);
  const std::set<int> fine{0, 2, 3, 4};
  const auto ends_well = [&](const std::string& arguments) {
    std::filesystem::remove_all(folder + "/made");
    std::filesystem::remove_all(folder + "/heads");
    const Outcome outcome = shell("timeout 120 $DECOSCOPE " + arguments);
    EXPECT_TRUE(fine.contains(outcome.code)) << arguments << ": " << outcome.code << outcome.err;
  };
  for (const std::string& command : commands_with_numbers(model, record, folder))
    for (const char* edge : {"9223372036854775807", "-9223372036854775808", "18446744073709551615"})
      ends_well(command + "=" + edge);
  // The maximum of each option.
  const std::string generate = "generate --prompt Anna --model " + model;
  for (const std::string& most :
       {generate + " --max-tokens 2147483647",
        generate + " --max-tokens 4 --temperature 1 --top-k 2147483647",
        "bench step --rows 1 --repeat 1 --context 2147483647 --model " + model,
        "bench step --rows 1 --repeat 1 --context 4 --first-steps 2 --new-prompt-tokens 2147483647 "
        "--model " +
            model,
        "reason tot --count 1 --depth 1 --thoughts 1 --start 1125899906842624 --model " + model,
        "trace convert --last-step 2147483647 " + record + " " + folder + "/all.json"})
    ends_well(most);
  for (const char* scale : {"0x1", "1x0", "-4x1", "2147483647x2147483647", "9223372036854775808x1",
                            "1x9223372036854775807", "1024x1024"})
    ends_well(generate + " --max-tokens 2 --scale " + scale);
}

TEST_F(CliInputs, extreme_decoder_options_cause_no_internal_error) {
  const std::string model = small_model();
  ASSERT_EQ(run("model random --heads medusa --model " + model + " " + folder + "/medusa").code, 0);
  ASSERT_EQ(run("model random --heads chimera --model " + model + " " + folder + "/chimera").code,
            0);
  const std::set<int> fine{0, 2, 4};
  for (const engine::DecoderInfo& decoder : engine::decoders()) {
    const std::string helper = decoder.needs_draft   ? " --draft " + model
                               : decoder.needs_heads ? " --heads " + folder + "/" + decoder.name
                                                     : "";
    const std::string command = "timeout 120 $DECOSCOPE generate --prompt Anna --max-tokens 4" +
                                helper + " --model " + model + " --decoder " + decoder.name;
    for (const engine::OptionInfo& option : decoder.options) {
      if (option.type != engine::OptionInfo::Type::Int &&
          option.type != engine::OptionInfo::Type::Counts)
        continue;
      const auto highest = std::to_string(static_cast<std::int64_t>(option.max));
      for (const std::string& value : {std::string("9223372036854775807"), highest}) {
        const Outcome outcome = shell(command + " --set " + option.name + "=" + value);
        EXPECT_TRUE(fine.contains(outcome.code))
            << decoder.name << " " << option.name << "=" << value << ": " << outcome.err;
      }
    }
  }
}

TEST_F(CliInputs, prompts_may_have_a_byte_order_mark_or_come_from_a_pipe) {
  const std::string model = small_model(), plain = folder + "/plain.jsonl";
  const std::string line = R"({"id":"a","prompt":"Anna"})", other = R"({"id":"b","prompt":"Ben"})";
  std::ofstream(plain) << line << "\n" << other << "\n";
  std::ofstream(folder + "/marked.jsonl") << "\xEF\xBB\xBF" << line << "\r\n\r\n" << other;
  std::ofstream(folder + "/joined.jsonl") << "\xEF\xBB\xBF" << line << "\n\xEF\xBB\xBF" << other;
  const std::string generate = "$DECOSCOPE generate --max-tokens 4 --model " + model;
  const Outcome wanted = shell(generate + " --prompt-file " + plain);
  ASSERT_EQ(wanted.code, 0) << wanted.err;
  ASSERT_FALSE(wanted.out.empty());
  for (const std::string& command :
       {generate + " --prompt-file " + folder + "/marked.jsonl",
        generate + " --prompt-file " + folder + "/joined.jsonl",
        generate + " --prompt-file - < " + folder + "/marked.jsonl",
        "cat " + plain + " | " + generate + " --prompt-file -",
        "cat " + plain + " | " + generate + " --prompt-file /dev/stdin",
        generate + " --prompt-file <(cat " + plain + ")",
        "mkfifo " + folder + "/fifo; (sleep 0.3; cat " + plain + " > " + folder + "/fifo) & " +
            generate + " --prompt-file " + folder + "/fifo"}) {
    const Outcome outcome = shell("timeout 60 bash -c \"" + command + "\"");
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
    EXPECT_EQ(outcome.out, wanted.out) << command;
  }
  const Outcome bad = shell("printf \"\\n{oops\\n\" | " + generate + " --prompt-file -");
  EXPECT_EQ(bad.code, 3);
  EXPECT_NE(bad.err.find("standard input:2"), std::string::npos) << bad.err;
  const Outcome empty = shell(generate + " --prompt-file - < /dev/null");
  EXPECT_NE(empty.err.find("standard input: found no prompts"), std::string::npos) << empty.err;
}

TEST_F(CliInputs, another_encoding_is_refused_by_name) {
  const std::string model = small_model(), wide = folder + "/wide.jsonl";
  std::ofstream(wide, std::ios::binary) << std::string("\xff\xfe{\0}\0\n\0", 8);
  for (const std::string& command :
       {"generate --model " + model + " --prompt-file " + wide, "data check " + wide,
        "data stats " + wide, "train target --recipe " + wide + " --out " + folder + "/x",
        "reason cot --model " + model + " --data " + wide,
        "reason tot --count 1 --model " + model + " --prompts " + wide,
        "model score --count 1 --task kb --model " + model + " --resume " + wide,
        "model tree demo-medusa --accuracies " + wide,
        "model tree demo-medusa --rows auto --costs " + wide,
        "model random --config " + wide + " " + folder + "/y"})
    refused(command, 3, "UTF-16 (little-endian), expected UTF-8; `iconv -f UTF-16 -t UTF-8`");
}

TEST_F(CliInputs, files_read_once_may_be_pipes) {
  const std::string model = small_model();
  ASSERT_EQ(shell("$DECOSCOPE data generate kb --count 2 > " + folder + "/two.jsonl").code, 0);
  const std::string accuracies = kAssets + "/models/demo-medusa/accuracies.json";
  std::ofstream(folder + "/costs.json") << "\xEF\xBB\xBF"
                                        << R"({"rows":[{"rows":1,"ms":1.0},{"rows":8,"ms":1.5}]})";
  for (const std::string& command :
       {"cat " + folder + "/two.jsonl | $DECOSCOPE data check -",
        "$DECOSCOPE data stats <(cat " + folder + "/two.jsonl)",
        "$DECOSCOPE reason cot --shots 0 --max-tokens 4 --model " + model + " --data - < " +
            folder + "/two.jsonl",
        "$DECOSCOPE reason cot --count 1 --max-tokens 4 --model " + model + " --prompts <(cat " +
            kAssets + "/prompts/cot/kb.jsonl)",
        "$DECOSCOPE model tree demo-medusa --accuracies <(cat " + accuracies + ")",
        "$DECOSCOPE model tree demo-medusa --rows auto --costs <(cat " + folder + "/costs.json)",
        "cat " + folder + "/config.json | $DECOSCOPE model random --config - " + folder +
            "/made"}) {
    const Outcome outcome = shell("timeout 60 bash -c \"" + command + "\"");
    EXPECT_EQ(outcome.code, 0) << command << ": " << outcome.err;
  }
}

TEST_F(CliInputs, files_read_twice_refuse_a_pipe_at_once) {
  const std::string model = small_model(), pipe = folder + "/pipe.pdrun";
  ASSERT_EQ(shell("mkfifo " + pipe).code, 0);
  for (const std::string& command :
       {"trace info " + pipe, "trace validate " + pipe,
        "trace convert " + pipe + " " + folder + "/x.json",
        "train target --recipe " + pipe + " --out " + folder + "/x",
        "train medusa --recipe " + kAssets + "/recipes/medusa.json --out " + folder +
            "/y --texts " + pipe}) {
    const Outcome outcome = shell("timeout 60 $DECOSCOPE " + command);
    expect_refused(outcome, command, 3, "found a pipe");
  }
  // --resume also writes the file.
  refused("model score --count 1 --task kb --model " + model + " --resume " + pipe, 4,
          "found a folder or device");
}

TEST_F(CliInputs, a_model_with_nan_weights_is_not_valid) {
  const std::string model = small_model(), heads = folder + "/my-heads";
  ASSERT_EQ(run("model random --heads medusa --model " + model + " " + heads).code, 0);
  for (const std::string& path : {model, heads}) {
    EXPECT_EQ(run("model validate --scan " + path).code, 0);
    const std::string file = path + "/model.safetensors";
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-2, std::ios::end);
    bytes.write("\xc0\x7f", 2);  // a NaN of bf16
    bytes.close();
    EXPECT_EQ(run("model validate " + path).code, 0)
        << "without --scan the weights are not checked";
    refused("model validate --scan " + path, 3, "found 1 NaN or infinite value,");
    const Outcome outcome = run("model validate --scan --json " + path);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document["valid"], false);
    EXPECT_EQ(document["faults"].size(), 1u) << document;
  }
}

TEST_F(CliInputs, a_tokenizer_is_named_by_file_directory_or_model) {
  const std::string records = folder + "/two.jsonl", target = kAssets + "/models/demo-target";
  ASSERT_EQ(shell("$DECOSCOPE data generate kb --count 2 > " + records).code, 0);
  const std::string stats = "data stats " + records + " --tokenizer ";
  const std::string wanted = run(stats + target).out;
  EXPECT_EQ(run(stats + target + "/tokenizer.model").out, wanted);
  EXPECT_EQ(run(stats + "demo-target").out, wanted);
  refused(stats + "demo-targt", 3, "did you mean demo-target?");
}

TEST_F(CliInputs, a_missing_record_file_is_refused) {
  std::ofstream(folder + "/none.jsonl") << "\n";
  for (const std::string command : {"data check ", "data stats "})
    refused(command + folder + "/none.jsonl", 3, "found no records");
}

TEST_F(CliInputs, published_medusa_heads_are_opened) {
  const std::string bundled = kAssets + "/models/demo-medusa", heads = folder + "/published";
  std::filesystem::create_directory(heads);
  const auto config = [&](const std::string& more) {
    std::ofstream(heads + "/config.json")
        << R"({"base_model_name_or_path":"lmsys/vicuna-7b-v1.3","medusa_num_heads":4,)"
        << R"("medusa_num_layers":1,"transformers_version":"4.34.1")" << more << "}";
  };
  config("");
  std::filesystem::copy(bundled + "/model.safetensors", heads + "/medusa_lm_head.safetensors");
  std::filesystem::copy(bundled + "/tree.json", heads + "/tree.json");
  const std::string ask = " --set tree=own --prompt Anna --max-tokens 12 --json";
  const Outcome opened = run("generate --decoder medusa --heads " + heads + ask);
  ASSERT_EQ(opened.code, 0) << opened.err;
  EXPECT_NE(opened.err.find("the target is demo-target"), std::string::npos) << opened.err;
  const json ours = json::parse(run("generate --decoder medusa --heads demo-medusa" + ask).out);
  const json theirs = json::parse(opened.out);
  EXPECT_EQ(theirs["identical_to_ar"], true);
  EXPECT_EQ(theirs["metrics"], ours["metrics"]);
  EXPECT_EQ(run("model validate " + heads).code, 0);
  EXPECT_EQ(json::parse(run("model info --json " + heads).out)["vocab_size"], target_vocab_size());
  refused("generate --decoder medusa --prompt a --heads " + heads + " --model " + small_model(), 3,
          "expected [64, 64]");
  refused("generate --decoder speculative --prompt a --heads " + heads, 2, "medusa and chimera");
  std::filesystem::rename(heads + "/medusa_lm_head.safetensors", heads + "/medusa_lm_head.pt");
  refused("generate --decoder medusa --prompt a --heads " + heads, 3, "weights_only=True");
  config(R"(,"hydra_num_heads":4,"model_type":"hydra")");
  refused("generate --decoder medusa --prompt a --heads " + heads, 3, "heads of Hydra");
}

TEST_F(CliInputs, unsupported_models_are_refused_with_a_suggestion) {
  const std::string ask = "generate --prompt a --model ";
  std::ofstream(folder + "/x.gguf") << "GGUF....";
  refused(ask + folder + "/x.gguf", 3, "x.gguf: version: found 774778414, expected 2 or 3");
  refused(ask + "org-of-nobody/some-model", 3, "hf download org-of-nobody/some-model");
  refused("train draft --recipe " DECOSCOPE_SOURCE_DIR "/assets/recipes/tiny.json --out " + folder +
              "/drafted --tokenizer org-of-nobody/some-model",
          3, "hf download org-of-nobody/some-model");
  std::ofstream(folder + "/m.zip") << "PK\x03\x04 and more";
  refused(ask + folder + "/m.zip", 3, "unpack it");
  const std::string model = small_model();
  refused(ask + model + "/model.safetensors", 3, "name the directory that holds it: " + model);
  refused("trace info " + model, 3, "found a directory");
  const std::string weights = model + "/model.safetensors";
  for (const auto& [name, part] :
       {std::pair("pytorch_model.bin", "save_pretrained('OUT')"),
        std::pair("pytorch_model.bin.index.json", "use the model*.safetensors"),
        std::pair("consolidated.safetensors", "in Hugging Face's layout"),
        std::pair("model-00001-of-00001.safetensors", "rename it to model.safetensors"),
        std::pair("model-00001-of-00003.safetensors", "every shard"),
        std::pair("model-q4.gguf", "a GGUF file"), std::pair("model.onnx", "another program")}) {
    std::filesystem::rename(weights, model + "/" + name);
    refused(ask + model, 3, std::string(name));
    refused(ask + model, 3, part);
    std::filesystem::rename(model + "/" + name, weights);
  }
  std::ofstream(model + "/adapter_config.json") << "{}";
  const Outcome noted = run("generate --prompt a --max-tokens 2 --model " + model);
  EXPECT_EQ(noted.code, 0) << noted.err;
  EXPECT_NE(noted.err.find("the adapter is not applied"), std::string::npos) << noted.err;
  std::filesystem::remove(weights);
  refused(ask + model, 3, "found no base_model_name_or_path");
  for (const auto& [text, part] :
       {std::pair("  <!doctype html><html>", "a web page"),
        std::pair("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                  "a Git LFS pointer")}) {
    std::ofstream(model + "/config.json") << text;
    std::ofstream(weights) << text;
    refused(ask + model, 3, part);
  }
}

}  // namespace

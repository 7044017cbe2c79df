// Random models, and models too large for any machine.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

constexpr const char* kTarget = DECOSCOPE_SOURCE_DIR "/assets/models/demo-target";

TEST_F(Cli, a_random_model_without_a_tokenizer_prints_a_note) {
  const Outcome made = run("model random --config " + tiny_config() + " " + folder + "/m");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.err.find("bench step --model " + folder + "/m"), std::string::npos) << made.err;
  EXPECT_EQ(run("bench step --rows 1 --context 4 --repeat 1 --json --model " + folder + "/m").code,
            0);
  EXPECT_EQ(run("generate --prompt a --model " + folder + "/m").code, 3);
}

TEST_F(Cli, architectures_are_listed_and_others_refused_by_name) {
  const json list = json::parse(run("model list-architectures --json").out);
  ASSERT_EQ(list.size(), 9u);
  EXPECT_EQ(list[0]["model_type"], "llama");
  EXPECT_EQ(list[8]["gguf"], "gemma3");
  const std::string text = run("model list-architectures").out;
  for (const json& one : list)
    EXPECT_NE(text.find(one["class"].get<std::string>()), std::string::npos) << one;
  std::ofstream(folder + "/config.json") << R"({"model_type": "mamba", "hidden_size": 32})";
  const Outcome made = run("model random --config " + folder + "/config.json " + folder + "/m");
  EXPECT_EQ(made.code, 3);
  EXPECT_NE(
      made.err.find("model_type: found \"mamba\", expected llama (LlamaForCausalLM), mistral"),
      std::string::npos)
      << made.err;
  EXPECT_NE(made.err.find("gemma3_text (Gemma3ForCausalLM)"), std::string::npos) << made.err;
}

TEST_F(Cli, a_model_without_a_tokenizer_is_valid_with_a_note) {
  const std::string tiny = tiny_model();
  for (const std::string command : {"model validate ", "model info "}) {
    const Outcome outcome = run(command + tiny);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("note: " + tiny + ": no tokenizer, so it cannot"), std::string::npos)
        << outcome.out;
    const json notices = json::parse(run(command + "--json " + tiny).out)["notices"];
    ASSERT_EQ(notices.size(), 1u) << notices;
    EXPECT_NE(notices[0].get<std::string>().find("no tokenizer"), std::string::npos);
  }
}

TEST_F(CliModel, a_random_model_copies_a_tokenizer_from_any_source) {
  std::filesystem::copy_file(std::string(kTarget) + "/tokenizer.model", folder + "/pieces.bin");
  int n = 0;
  for (const std::string& from : {std::string(kTarget), std::string(kTarget) + "/tokenizer.model",
                                  folder + "/pieces.bin", std::string("demo-target")}) {
    const std::string out = folder + "/m" + std::to_string(++n);
    const Outcome made = run("model random --config " + tiny_config(target_vocab_size()) +
                             " --tokenizer " + from + " " + out);
    ASSERT_EQ(made.code, 0) << from << ": " << made.err;
    EXPECT_EQ(made.err, "") << from;
    const Outcome text = run("generate --prompt 'Anna has' --max-tokens 4 --model " + out);
    EXPECT_EQ(text.code, 0) << from << ": " << text.err;
  }
}

TEST_F(CliModel, too_large_a_tokenizer_is_refused_before_writing) {
  const std::string out = folder + "/m";
  const Outcome made = run("model random --config " + tiny_config(128) + " --tokenizer " +
                           std::string(kTarget) + " " + out);
  EXPECT_EQ(made.code, 3);
  EXPECT_EQ(lines(made.err), 1) << made.err;
  for (const std::string& size : {std::to_string(target_vocab_size()), std::string("128")})
    EXPECT_NE(made.err.find(size), std::string::npos) << made.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(run("model random --config " + tiny_config() + " --tokenizer /nonexistent " + out).code,
            3);
}

// KV02.
TEST_F(CliModel, a_model_that_does_not_fit_is_refused_with_sizes) {
  for (const char* command : {"generate --prompt a", "compare --prompt a", "bench step"}) {
    const Outcome outcome = run(std::string(command) + " --scale 64x64");
    EXPECT_EQ(outcome.code, 4) << command << outcome.err;
    EXPECT_EQ(lines(outcome.err), 1) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    for (const char* part : {"64x64", "TB of memory are needed", "available"})
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
}

TEST_F(Cli, a_raised_limit_opens_a_larger_file) {
  const std::string config = tiny_model() + "/config.json";
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  const std::string text = read_file(config);
  std::ofstream(config) << "{\"extra\": " << deep << "," << text.substr(text.find('{') + 1);
  const std::string tiny = folder + "/tiny";
  for (const std::string& command :
       {"model info " + tiny, "model validate " + tiny,
        "bench step --rows 1 --context 4 --repeat 1 --model " + tiny}) {
    EXPECT_EQ(run(command).code, 3) << command;
    const Outcome raised = run(command + " --limit json_depth=71");
    EXPECT_EQ(raised.code, 0) << command << ": " << raised.err;
  }
}

TEST_F(CliModel, saved_scores_are_reused_for_the_same_weights_only) {
  const std::string model = folder + "/m", figures = folder + "/figures.jsonl";
  const auto make = [&](const std::string& seed) {
    std::filesystem::remove_all(model);
    const Outcome made = run("model random --config " + tiny_config(target_vocab_size()) +
                             " --tokenizer " + kTarget + " --seed " + seed + " " + model);
    EXPECT_EQ(made.code, 0) << made.err;
  };
  make("1");
  const std::string score = "model score --model " + model;
  const std::string ask =
      score + " --json --task arith,kb --level 1 --count 2 --split dev --resume " + figures;
  const Outcome first = run(ask);
  ASSERT_EQ(first.code, 0) << first.err;
  const json scores = json::parse(first.out);
  EXPECT_EQ(scores["split"], "dev");
  EXPECT_EQ(scores["complete"], true);
  ASSERT_EQ(scores["scores"].size(), 2u);
  EXPECT_EQ(scores["scores"][0]["n_correct"], 0) << "from a random model";
  std::string kept = read_file(figures);
  EXPECT_EQ(lines(kept), 3) << kept;
  EXPECT_EQ(run(ask).out, first.out);
  EXPECT_EQ(read_file(figures), kept);

  const std::string none = "\"n_correct\":0";
  ASSERT_NE(kept.find(none), std::string::npos) << kept;
  std::ofstream(figures) << kept.replace(kept.find(none), none.size(), "\"n_correct\":1");
  EXPECT_EQ(json::parse(run(ask).out)["scores"][0]["n_correct"], 1) << "read, not measured";
  make("2");
  EXPECT_EQ(json::parse(run(ask).out)["scores"][0]["n_correct"], 0) << "other weights";
  EXPECT_EQ(run(score + " --split dev --write").code, 2) << "the card has scores of the test split";
  EXPECT_EQ(run(score + " --split all").code, 2);
}

TEST_F(CliModel, the_context_option_is_applied_and_checked) {
  const std::string model = folder + "/m";
  ASSERT_EQ(run("model random --config " + tiny_config(target_vocab_size()) + " --tokenizer " +
                kTarget + " " + model)
                .code,
            0);
  const std::string ask = "generate --model " + model + " --json --ignore-eos --max-tokens 2000 ";
  const std::string prompt = "--prompt \"Anna has some stickers and more\" ";
  const Outcome small = run(ask + prompt + "--context 5");
  EXPECT_EQ(small.code, 3);
  EXPECT_NE(small.err.find("the context of m holds 5"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("--context N"), std::string::npos) << small.err;
  const Outcome fits = run(ask + prompt + "--context 40");
  ASSERT_EQ(fits.code, 0) << fits.err;
  const json result = json::parse(fits.out);
  EXPECT_EQ(result["stop_reason"], "context");
  EXPECT_EQ(result["prompt_tokens"].size() + result["tokens"].size(), 40u);
  EXPECT_EQ(fits.err.find("more than"), std::string::npos) << fits.err;
  const Outcome beyond = run(ask + "--prompt Anna --context 1500");
  ASSERT_EQ(beyond.code, 0) << beyond.err;
  EXPECT_GT(json::parse(beyond.out)["tokens"].size(), 1400u);
  EXPECT_NE(beyond.err.find("more than the"), std::string::npos) << beyond.err;
  EXPECT_EQ(run(ask + prompt + "--context 1").code, 2);
  EXPECT_EQ(run(ask + prompt + "--context 99999999").code, 2) << "above the limit of files";
}

TEST_F(CliModel, model_defaults_apply_where_no_option_is_given) {
  const std::string model = folder + "/m";
  ASSERT_EQ(run("model random --config " + tiny_config(target_vocab_size()) + " --tokenizer " +
                kTarget + " " + model)
                .code,
            0);
  std::ofstream(model + "/generation_config.json")
      << R"({"do_sample": true, "temperature": 0.7, "top_k": 20, "repetition_penalty": 1.5,
             "max_new_tokens": 6, "num_beams": 4})";
  const std::string ask = "generate --model " + model + " --json --ignore-eos --prompt Anna ";
  const auto tokens = [&](const std::string& options) {
    const Outcome outcome = run(ask + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out)["tokens"];
  };
  const json sampled = tokens("--defaults model");
  EXPECT_EQ(sampled.size(), 6u);
  EXPECT_EQ(sampled,
            tokens("--temperature 0.7 --top-k 20 --repetition-penalty 1.5 --max-tokens 6"));
  EXPECT_EQ(tokens("--defaults model --temperature 0 --max-tokens 9"),
            tokens("--repetition-penalty 1.5 --max-tokens 9"));
  EXPECT_EQ(tokens("--max-tokens 6"), tokens("--defaults program --max-tokens 6"));
  EXPECT_NE(tokens("--max-tokens 6"), sampled);
  const std::string plain = run(ask + "--max-tokens 2").err,
                    own = run(ask + "--defaults model").err;
  EXPECT_NE(plain.find("not applied; --defaults model applies them"), std::string::npos) << plain;
  EXPECT_NE(own.find("max_new_tokens 6: applied"), std::string::npos) << own;
  for (const std::string& reported : {plain, own})
    EXPECT_NE(reported.find("num_beams 4: not applied; not supported"), std::string::npos)
        << reported;
  EXPECT_EQ(run(ask + "--defaults modle").code, 2);
}

TEST_F(CliModel, an_option_without_effect_in_greedy_mode_is_noted) {
  const std::string model = folder + "/m";
  ASSERT_EQ(run("model random --config " + tiny_config(target_vocab_size()) + " --tokenizer " +
                kTarget + " " + model)
                .code,
            0);
  std::ofstream(model + "/generation_config.json") << R"({"temperature": 0.7})";
  const std::string ask =
      "generate --model " + model + " --defaults model --prompt Anna --max-tokens 2 ";
  const Outcome idle = run(ask + "--top-k 5 --top-p 0.5");
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_NE(idle.err.find("note: --top-k, --top-p: no effect"), std::string::npos) << idle.err;
  for (const char* options : {"", "--top-k 5 --temperature 1"})
    EXPECT_EQ(run(ask + options).err.find("no effect"), std::string::npos) << options;
}

TEST_F(CliModel, a_model_larger_than_the_disk_is_refused_first) {
  const std::string out = folder + "/big";
  const Outcome outcome = run("model scale demo-target " + out + " --scale 256x1024");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("are free"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace

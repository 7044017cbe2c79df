// Prompts with control symbols, and continuation text, with a LLaMA tokenizer that puts a space
// before each word.
#include <algorithm>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/cli_fixture.h"

namespace {

using engine::TokenId;
using nlohmann::json;
using testing::Contains;
using testing::Not;

class CliTokenizer : public Cli {
 protected:
  /// Makes a random model with that tokenizer and its JSON files.
  void SetUp() override {
    Cli::SetUp();
    model_ = folder + "/model";
    const Outcome made =
        run("model random --config " + tiny_config(512) + " --tokenizer " +
            DECOSCOPE_SOURCE_DIR "/tests/fixtures/tokenizers/llama_legacy " + model_);
    ASSERT_EQ(made.code, 0) << made.err;
    std::vector<std::string> notices;
    tokenizer_ = engine::open_tokenizer(model_, {}, notices);
  }
  json generated(const std::string& arguments) const {
    const Outcome outcome = run("generate --model " + model_ + " --ignore-eos --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  std::vector<TokenId> prompt_tokens(const std::string& arguments) const {
    return generated("--max-tokens 1 " + arguments).at("prompt_tokens");
  }

  std::string model_;
  std::unique_ptr<engine::Tokenizer> tokenizer_;
};

const std::string kByteLevel = DECOSCOPE_SOURCE_DIR "/tests/fixtures/bpe/llama3";

TEST_F(Cli, model_tokenize_prints_ids_and_pieces) {
  const Outcome text = run("model tokenize " + kByteLevel + " --text 'a the caf\u00E9'");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, testing::EndsWith(" tokens\n"));
  EXPECT_THAT(text.out, testing::HasSubstr("   the\n"));

  const auto tokens = [&](const std::string& arguments) {
    const Outcome outcome = run("model tokenize " + kByteLevel + " --json " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const json plain = tokens("--text 'a<|eot_id|>\u00E9'");
  const json special = tokens("--special --text 'a<|eot_id|>\u00E9'");
  std::string joined;
  for (const std::string piece : plain.at("pieces")) joined += piece;
  EXPECT_THAT(joined, testing::StartsWith("a<|eot_id|>"));
  EXPECT_EQ(plain.at("tokens").size(), plain.at("pieces").size());
  EXPECT_EQ(special.at("pieces").at(0), "<|begin_of_text|>");
  EXPECT_EQ(special.at("pieces").at(2), "<|eot_id|>");
  EXPECT_EQ(run("model tokenize " + kByteLevel + " --text ''").code, 2) << "an empty value";
}

TEST_F(Cli, model_tokenize_reads_files_of_prompts) {
  std::ofstream(folder + "/prompts.jsonl") << R"({"prompt": "one"})"
                                           << "\n\n"
                                           << R"({"id": 7, "prompt": "two\u0000"})"
                                           << "\n";
  const Outcome outcome = run("model tokenize " + kByteLevel + "/tokenizer.json --json --file " +
                              folder + "/prompts.jsonl");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 2);
  const Outcome bundled = run("model tokenize demo-target --text 'the cat'");
  EXPECT_EQ(bundled.code, 0) << bundled.err;
}

TEST_F(Cli, model_tokenize_refuses_in_one_line) {
  EXPECT_EQ(run("model tokenize " + kByteLevel).code, 2);
  EXPECT_EQ(run("model tokenize demo-target --text a --file b").code, 2);
  std::ofstream(folder + "/tokenizer.json") << R"({"model":{"type":"WordPiece"}})";
  const Outcome refused = run("model tokenize " + folder + "/tokenizer.json --text a");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, testing::HasSubstr("model.type: found \"WordPiece\", expected \"BPE\""));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1);
}

TEST_F(CliTokenizer, symbols_in_a_prompt_are_ids_or_text) {
  const TokenId pad = 502;  // from added_tokens.json, the third
  const std::vector<TokenId> ids = prompt_tokens("--prompt '<s>a[PAD]</s>'");
  EXPECT_EQ(std::ranges::count(ids, 1), 1) << "the prompt's own <s> is its BOS";
  EXPECT_EQ((std::vector<TokenId>{ids.end() - 2, ids.end()}), (std::vector<TokenId>{pad, 2}));
  const std::vector<TokenId> text = prompt_tokens("--no-special --prompt '<s>a[PAD]</s>'");
  EXPECT_EQ(std::ranges::count(text, 1), 1);
  EXPECT_THAT(text, Not(Contains(pad)));
  EXPECT_THAT(text, Not(Contains(2)));
  EXPECT_EQ(tokenizer_->decode(text), "<s>a[PAD]</s>");
}

/// Removes bytes that belong to no character.
std::string without_bytes(const std::string& text) {
  return std::regex_replace(text, std::regex("\xEF\xBF\xBD|<0x[0-9A-F]{2}>"), "");
}

TEST_F(CliTokenizer, text_continues_the_prompt_in_json_and_in_a_trace) {
  int n_with_space = 0;
  for (int seed = 1; seed <= 40; seed++) {
    const std::string record = folder + "/" + std::to_string(seed);
    const json found = generated("--prompt 'def f(x):' --max-tokens 12 --temperature 3 --seed " +
                                 std::to_string(seed) + " --record " + record + ".pdrun");
    const std::vector<TokenId> prompt = found.at("prompt_tokens"), tokens = found.at("tokens");
    const std::string text = found.at("text");
    EXPECT_EQ(text, engine::continuation_text(*tokenizer_, prompt, tokens));
    n_with_space += text.starts_with(' ');

    ASSERT_EQ(run("trace convert " + record + ".pdrun " + record + ".json").code, 0);
    std::string steps;
    const json trace = json::parse(read_file(record + ".json"));
    for (const json& slice : trace.at("traceEvents"))
      if (slice.contains("args") && slice["args"].contains("provenance"))
        steps += slice["args"].at("text").get<std::string>();
    EXPECT_EQ(without_bytes(steps), without_bytes(text));
  }
  EXPECT_GT(n_with_space, 0);
}

}  // namespace

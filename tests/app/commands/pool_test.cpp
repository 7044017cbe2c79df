// Texts that decoders copy from: --pool, and the texts of earlier prompts.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"

namespace {

using nlohmann::json;

class CliPool : public CliModel {
 protected:
  static constexpr const char* kPrompt = " --prompt \"Anna has 4 cups.\" --max-tokens 40";

  json document(const std::string& arguments) const {
    const Outcome found = run(arguments + " --json");
    EXPECT_EQ(found.code, 0) << found.err;
    return json::parse(found.out);
  }
  /// Tokens of a run by the word that says who drafted them.
  static int n_drafted_by(const json& run, const std::string& word) {
    int n = 0;
    for (const json& token : run["token_info"]) n += token["drafted_by"] == word;
    return n;
  }
};

TEST_F(CliPool, guesses_are_copied_from_a_file) {
  const json ar = document(std::string("generate --decoder ar") + kPrompt);
  std::ofstream("pool.txt") << "Anna has 4 cups." << ar["text"].get<std::string>();
  for (const char* decoder : {"suffix", "lookahead"}) {
    const char* sizes = decoder == std::string("suffix") ? " --set n_tokens=12"
                                                         : " --set window=5 --set n_guesses=5";
    const std::string command = std::string("generate --decoder ") + decoder + sizes + kPrompt;
    const json without = document(command), with = document(command + " --pool pool.txt");
    EXPECT_EQ(with["text"], ar["text"]);
    EXPECT_EQ(with["identical_to_ar"], true);
    EXPECT_LT(with["steps"], without["steps"]) << decoder;
    EXPECT_GT(with["metrics"]["copied_from_file"], 8);
    if (decoder == std::string("suffix")) {
      EXPECT_EQ(n_drafted_by(with, "file"), with["metrics"]["copied_from_file"]);
    }
  }
  const json compared =
      document(std::string("compare --decoders ar,suffix --pool pool.txt --repeat 2") + kPrompt);
  EXPECT_FALSE(compared.empty());
}

TEST_F(CliPool, a_file_that_is_not_read_is_refused) {
  std::ofstream("pool.txt") << "Anna";
  const Outcome unused = run(std::string("generate --decoder ar --pool pool.txt") + kPrompt);
  EXPECT_EQ(unused.code, 2);
  EXPECT_NE(
      unused.err.find("--pool pool.txt: not used by ar; used by lookahead, suffix and chimera"),
      std::string::npos)
      << unused.err;
  const Outcome missing = run(std::string("generate --decoder suffix --pool none.txt") + kPrompt);
  EXPECT_EQ(missing.code, 3) << missing.err;
  EXPECT_NE(missing.err.find("none.txt"), std::string::npos) << missing.err;
  std::ofstream("large.txt").close();
  std::filesystem::resize_file("large.txt", 64'000'001);  // sparse
  const Outcome large = run(std::string("generate --decoder suffix --pool large.txt") + kPrompt);
  EXPECT_EQ(large.code, 3) << large.err;
  EXPECT_NE(large.err.find("more than 64000000 bytes"), std::string::npos) << large.err;
}

TEST_F(CliPool, prompts_copy_from_the_texts_before_them) {
  {
    std::ofstream file("twice.jsonl");
    for (int i = 0; i < 2; i++)
      file << R"({"prompt": "Anna has 4 cups."})"
           << "\n";
  }
  const json runs = document(
      "generate --decoder suffix --set n_tokens=12 --prompt-file twice.jsonl --max-tokens 40");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0]["text"], runs[1]["text"]);
  EXPECT_EQ(n_drafted_by(runs[0], "earlier"), 0);
  EXPECT_GT(n_drafted_by(runs[1], "earlier"), 8);
  const std::string lookahead =
      "generate --decoder lookahead --set window=5 --set n_guesses=5 --prompt-file twice.jsonl "
      "--max-tokens 40";
  const json fresh = document(lookahead), kept = document(lookahead + " --set keep=true");
  EXPECT_EQ(fresh[1]["steps"], fresh[0]["steps"]);
  EXPECT_EQ(kept[0]["steps"], fresh[0]["steps"]);
  EXPECT_LT(kept[1]["steps"], fresh[0]["steps"]);
  EXPECT_GT(kept[1]["metrics"]["copied_from_earlier"], 8);
  EXPECT_EQ(kept[1]["text"], fresh[1]["text"]);
  // A repeat does not copy from the text that it repeats.
  const auto steps = [&](const std::string& repeat) {
    const json document_of = document(
        "compare --decoders ar,suffix --set n_tokens=12 --max-tokens 40 --prompt \"Anna has 4 "
        "cups.\" --repeat " +
        repeat);
    for (const json& lane : document_of["summary"])
      if (lane["decoder"] == "suffix") return lane["tokens_per_step"].get<double>();
    return 0.0;
  };
  EXPECT_GT(steps("1"), 0);
  EXPECT_EQ(steps("1"), steps("3"));
}

TEST_F(CliPool, chimera_keeps_and_fills_its_cache_of_k_grams) {
  {
    std::ofstream file("twice.jsonl");
    for (int i = 0; i < 2; i++)
      file << R"({"prompt": "Anna has 4 cups."})"
           << "\n";
  }
  const std::string command =
      "generate --decoder chimera --prompt-file twice.jsonl --max-tokens 24 --set tree=rows8";
  const auto hits = [](const json& run) { return run["metrics"]["gram_hits"].get<int>(); };
  const json fresh = document(command), kept = document(command + " --set keep=true");
  EXPECT_EQ(hits(fresh[1]), hits(fresh[0]));
  EXPECT_EQ(hits(kept[0]), hits(fresh[0]));
  EXPECT_GT(hits(kept[1]), hits(kept[0]));
  const std::string text = fresh[0]["text"];
  std::ofstream("pool.txt") << "Anna has 4 cups." << text;
  const json filled = document(command + " --pool pool.txt");
  EXPECT_GT(hits(filled[0]), hits(fresh[0]));
  for (const json* runs : {&kept, &filled})
    for (const json& run : *runs) EXPECT_EQ(run["text"], text);
}

}  // namespace

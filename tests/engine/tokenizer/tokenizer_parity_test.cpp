// Compares token ids with those of Hugging Face transformers for the same folders.
// make_tokenizer_fixtures.py made both.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/sentencepiece.h"

namespace engine::test {
namespace {

const std::filesystem::path kFixtures =
    std::filesystem::path(DECOSCOPE_SOURCE_DIR) / "tests/fixtures/tokenizers";

/// Calls `check` with every case of every folder.
void for_each_case(const std::function<void(const Tokenizer&, const nlohmann::json& one)>& check) {
  int n_kinds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::vector<std::string> notices;
    const auto tokenizer = open_tokenizer(entry.path().string(), {}, notices);
    EXPECT_EQ(notices, std::vector<std::string>{});
    std::ifstream in(entry.path() / "cases.jsonl");
    int n_cases = 0;
    for (std::string line; std::getline(in, line); n_cases++) {
      const nlohmann::json one = nlohmann::json::parse(line);
      SCOPED_TRACE(one.at("text").dump());
      check(*tokenizer, one);
    }
    EXPECT_EQ(n_cases, 500);
    n_kinds++;
  }
  EXPECT_EQ(n_kinds, 5);
}

TEST(TokenizerParity, prompt_ids_equal_transformers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), TextReading{.symbols = true}),
              one.at("ids").get<std::vector<TokenId>>());
  });
}

TEST(TokenizerParity, plain_text_ids_equal_split_special_tokens) {
  int n_compared = 0;
  for_each_case([&](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const auto is_symbol = [&](TokenId id) { return id == 0 || tokenizer.is_special(id); };
    const std::string text = one.at("text");
    const std::vector<TokenId> found = tokenizer.encode(text, false);
    EXPECT_TRUE(std::ranges::none_of(found, is_symbol));
    if (one.at("plain").is_null()) return;  // transformers reads a symbol in that text
    EXPECT_EQ(tokenizer.encode(text), one.at("plain").get<std::vector<TokenId>>());
    n_compared++;
  });
  EXPECT_GT(n_compared, 1200);
}

TEST(TokenizerParity, decoded_text_equals_transformers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const auto ids = one.at("ids").get<std::vector<TokenId>>();
    // transformers omits an unknown token like a control symbol.
    if (std::ranges::find(ids, 0) != ids.end()) return;
    EXPECT_EQ(tokenizer.decode(ids), one.at("decoded").get<std::string>());
  });
}

}  // namespace
}  // namespace engine::test

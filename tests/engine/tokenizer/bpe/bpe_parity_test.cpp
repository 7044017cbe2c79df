// Token ids of tokenizer.json files against those of Hugging Face's tokenizers library, which
// make_bpe_fixtures.py recorded.
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/tokenizer_path.h"
#include "tests/support/smollm2.h"

namespace engine::test {
namespace {

const std::filesystem::path kFixtures =
    std::filesystem::path(DECOSCOPE_SOURCE_DIR) / "tests/fixtures/bpe";

void for_each_case(const std::function<void(const Tokenizer&, const nlohmann::json& one)>& check) {
  int n_kinds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::vector<std::string> notices;
    const auto tokenizer = open_tokenizer_at(entry.path().string(), {}, notices);
    EXPECT_EQ(notices, std::vector<std::string>{});
    std::ifstream in(entry.path() / "cases.jsonl");
    int n_cases = 0;
    for (std::string line; std::getline(in, line); n_cases++) {
      const nlohmann::json one = nlohmann::json::parse(line);
      SCOPED_TRACE(one.at("text").dump());
      check(*tokenizer, one);
    }
    EXPECT_EQ(n_cases, 80);
    n_kinds++;
  }
  EXPECT_EQ(n_kinds, 5);
}

std::vector<TokenId> ids_of(const nlohmann::json& one, const char* field) {
  return one.at(field).get<std::vector<TokenId>>();
}

TEST(BpeParity, prompt_ids_equal_tokenizers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), TextReading{.symbols = true}),
              ids_of(one, "ids"));
  });
}

TEST(BpeParity, plain_text_ids_equal_tokenizers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), false), ids_of(one, "plain"));
  });
}

TEST(BpeParity, decoded_text_equals_tokenizers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const std::vector<TokenId> ids = ids_of(one, "ids");
    const std::string decoded = one.at("decoded");
    EXPECT_EQ(tokenizer.decode(ids), decoded);
    // The stream gives whole characters only, and together the same text.
    TextStream stream(tokenizer, {});
    std::string streamed;
    for (const TokenId id : ids) streamed += stream.push(std::span(&id, 1));
    EXPECT_EQ(streamed + stream.finish(), decoded);
  });
}

TEST(BpeParity, a_continuation_equals_the_rest_of_the_whole_text) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const std::vector<TokenId> ids = ids_of(one, "ids");
    for (std::size_t n = 0; n <= ids.size(); n += 3) {
      const std::span<const TokenId> prompt = std::span(ids).first(n),
                                     rest = std::span(ids).subspan(n);
      const std::string whole = tokenizer.decode(ids);
      const std::string text = continuation_text(tokenizer, prompt, rest);
      EXPECT_TRUE(whole.ends_with(text));
    }
  });
}

TEST(BpeParity, smollm2_equals_transformers) {
  NEEDS_SMOLLM2();
  std::vector<std::string> notices;
  const auto tokenizer = open_tokenizer_at(smollm2_path(), {}, notices);
  EXPECT_EQ(notices, std::vector<std::string>{});
  std::ifstream in(kFixtures.parent_path() / "bpe_models/smollm2.jsonl");
  int n_cases = 0;
  for (std::string line; std::getline(in, line); n_cases++) {
    const nlohmann::json one = nlohmann::json::parse(line);
    SCOPED_TRACE(one.at("text").dump());
    const std::vector<TokenId> ids = ids_of(one, "ids");
    EXPECT_EQ(tokenizer->encode(one.at("text").get<std::string>(), TextReading{.symbols = true}),
              ids);
    EXPECT_EQ(tokenizer->decode(ids), one.at("decoded").get<std::string>());
  }
  EXPECT_EQ(n_cases, 64);
  EXPECT_EQ(tokenizer->end_of_turn_ids(), (std::vector<TokenId>{0, 2, 4}));
}

TEST(BpeParity, ids_out_of_range_decode_to_nothing) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json&) {
    const TokenId ids[] = {-1, tokenizer.vocab_size(), 2147483647};
    EXPECT_EQ(tokenizer.decode(ids), "");
    EXPECT_EQ(tokenizer.piece(-1), "");
    EXPECT_FALSE(tokenizer.is_special(-1));
  });
}

}  // namespace
}  // namespace engine::test

// Compares token ids with those of Hugging Face transformers for the same folders.
// make_tokenizer_fixtures.py made both.
#include <algorithm>

#include "tests/engine/tokenizer/tokenizer_cases.h"

namespace engine::test {
namespace {

void for_each_case(const CheckCase& check) {
  check_five_tokenizers("tokenizers", 500, check);
}

TEST(TokenizerParity, prompt_ids_equal_transformers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), TextReading{.symbols = true}),
              ids_of(one, "ids"));
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
    EXPECT_EQ(tokenizer.encode(text), ids_of(one, "plain"));
    n_compared++;
  });
  EXPECT_GT(n_compared, 1200);
}

TEST(TokenizerParity, decoded_text_equals_transformers) {
  for_each_case([](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const std::vector<TokenId> ids = ids_of(one, "ids");
    // transformers omits an unknown token like a control symbol.
    if (std::ranges::find(ids, 0) != ids.end()) return;
    EXPECT_EQ(tokenizer.decode(ids), one.at("decoded").get<std::string>());
  });
}

}  // namespace
}  // namespace engine::test

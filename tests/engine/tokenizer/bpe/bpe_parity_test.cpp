// Token ids of tokenizer.json files against those of Hugging Face's tokenizers library, which
// make_bpe_fixtures.py recorded.
#include "tests/engine/tokenizer/tokenizer_cases.h"
#include "tests/support/downloaded_models.h"

namespace engine::test {
namespace {

void for_each_case(const CheckCase& check) {
  check_five_tokenizers("bpe", 80, check);
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
  const std::string cases = DECOSCOPE_SOURCE_DIR "/tests/fixtures/bpe_models/smollm2.jsonl";
  check_cases(smollm2_path(), cases, 64, [](const Tokenizer& tokenizer, const nlohmann::json& one) {
    const std::vector<TokenId> ids = ids_of(one, "ids");
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), TextReading{.symbols = true}),
              ids);
    EXPECT_EQ(tokenizer.decode(ids), one.at("decoded").get<std::string>());
    EXPECT_EQ(tokenizer.end_of_turn_ids(), (std::vector<TokenId>{0, 2, 4}));
  });
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

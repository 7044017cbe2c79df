// Tokenizers of GGUF metadata: small vocabularies made by hand, and damaged ones.
#include "engine/tokenizer/gguf_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/models/gguf_bytes.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The metadata of a vocabulary; a member that is empty is left out.
struct Vocabulary {
  std::string model = "gpt2", pre = "gpt-2", name;
  std::vector<std::string> tokens = {"a", "b", "c", "Ġ", "ab", "Ġab", "<|im_end|>", "<user>"};
  std::vector<std::int32_t> types = {1, 1, 1, 1, 1, 1, 3, 4};
  std::vector<float> scores;
  std::vector<std::string> merges = {"a b", "Ġ ab"};
  std::vector<std::pair<std::string, std::uint32_t>> ids;
  std::vector<std::pair<std::string, bool>> flags;

  std::string bytes() const {
    GgufBytes file;
    file.text("general.architecture", "llama");
    if (!name.empty()) file.text("general.name", name);
    if (!model.empty()) file.text("tokenizer.ggml.model", model);
    if (!pre.empty()) file.text("tokenizer.ggml.pre", pre);
    if (!tokens.empty()) file.texts("tokenizer.ggml.tokens", tokens);
    if (!types.empty()) file.i32s("tokenizer.ggml.token_type", types);
    if (!scores.empty()) file.f32s("tokenizer.ggml.scores", scores);
    if (!merges.empty()) file.texts("tokenizer.ggml.merges", merges);
    for (const auto& [key, id] : ids) file.u32("tokenizer.ggml." + key, id);
    for (const auto& [key, flag] : flags) file.boolean("tokenizer.ggml." + key, flag);
    return file.bytes();
  }
};

/// Tokens of SentencePiece's kind.
Vocabulary sentencepiece() {
  Vocabulary v;
  v.model = "llama";
  v.pre = "";
  v.tokens = {"<unk>", "<s>", "</s>"};
  v.types = {2, 3, 3};
  v.scores = {0, 0, 0};
  for (int byte = 0; byte < 256; byte++) {
    v.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    v.types.push_back(6);
    v.scores.push_back(0);
  }
  const std::vector<std::string> texts = {"▁", "a", "b", "ab", "▁a", "▁ab"};
  for (std::size_t i = 0; i < texts.size(); i++) {
    v.tokens.push_back(texts[i]);
    v.types.push_back(1);
    v.scores.push_back(-static_cast<float>(i));
  }
  v.merges = {};
  return v;
}
constexpr TokenId kSpace = 259, kA = 260, kB = 261, kAb = 262, kSpaceA = 263, kSpaceAb = 264;

class GgufTokenizer : public testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> open(const std::string& bytes) {
    const std::string path = folder_ / "vocabulary.gguf";
    write_file(path, bytes);
    notices_.clear();
    return open_gguf_tokenizer(*GgufFile::open(path), {}, notices_);
  }
  std::shared_ptr<const Tokenizer> open(const Vocabulary& v) { return open(v.bytes()); }
  std::string refused(const std::string& bytes) {
    return without_offset(refusal([&] { open(bytes); }));
  }
  std::string refused(const Vocabulary& v) { return refused(v.bytes()); }

  Folder folder_;
  std::vector<std::string> notices_;
};

TEST_F(GgufTokenizer, byte_level_merges_words) {
  Vocabulary v;
  v.ids = {{"bos_token_id", 6}, {"eos_token_id", 6}};
  const auto tokenizer = open(v);
  EXPECT_THAT(tokenizer->encode("ab abc", false), ElementsAre(4, 5, 2));
  EXPECT_THAT(tokenizer->encode("a<user>b", false), ElementsAre(0, 7, 1));
  EXPECT_THAT(tokenizer->encode("a<|im_end|>", TextReading{.symbols = true}), ElementsAre(0, 6));
  EXPECT_THAT(tokenizer->encode("<|im_end|>", false), IsEmpty()) << "none of its bytes is a token";
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{5, 6, 5}), " ab ab");
  EXPECT_EQ(tokenizer->piece(3), " ");
  EXPECT_TRUE(tokenizer->is_special(6));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_THAT(tokenizer->end_of_turn_ids(), ElementsAre(6));
  EXPECT_THAT(notices_, IsEmpty());
}

// llama.cpp's converter lists a token for every row of the embedding. Models of a family with different numbers of rows have one vocabulary.
TEST_F(GgufTokenizer, padding_at_the_end_is_no_part_of_the_vocabulary) {
  Vocabulary v = sentencepiece();
  const auto n = static_cast<int>(v.tokens.size());
  for (const auto& [text, type] : std::vector<std::pair<std::string, int>>{
           {fmt::format("[PAD{}]", n), 5}, {fmt::format("[PAD{}]", n + 1), 5}}) {
    v.tokens.push_back(text);
    v.types.push_back(type);
    v.scores.push_back(-1000);
  }
  v.ids = {{"padding_token_id", static_cast<std::uint32_t>(n + 1)}};
  const auto tokenizer = open(v);
  EXPECT_EQ(tokenizer->vocab_size(), n);
  EXPECT_EQ(tokenizer->piece(n), "");
  v.ids = {{"eos_token_id", static_cast<std::uint32_t>(n)}};
  EXPECT_THAT(refused(v), HasSubstr(fmt::format("expected 0 to {}", n - 1)));
  v.ids = {};
  v.types.back() = 1;
  EXPECT_EQ(open(v)->vocab_size(), n + 2) << "a token that is used";
  v.types.back() = 5;
  v.tokens.back() = "[PAD7]";
  EXPECT_EQ(open(v)->vocab_size(), n + 2) << "another name";
}

TEST_F(GgufTokenizer, bos_is_added_as_the_file_or_the_kind_says) {
  Vocabulary v;
  v.ids = {{"bos_token_id", 6}, {"eos_token_id", 7}};
  EXPECT_THAT(open(v)->encode("a"), ElementsAre(0));
  v.flags = {{"add_bos_token", true}, {"add_eos_token", true}};
  EXPECT_THAT(open(v)->encode("a"), ElementsAre(6, 0, 7));
  v.flags = {};
  v.pre = "llama-bpe";
  EXPECT_THAT(open(v)->encode("a"), ElementsAre(6, 0)) << "Llama 3's files do not say it";
  EXPECT_THAT(open(v)->encode("a", false), ElementsAre(0));
}

TEST_F(GgufTokenizer, scores_decide_the_merges_of_sentencepiece) {
  Vocabulary v = sentencepiece();
  const auto tokenizer = open(v);
  EXPECT_THAT(tokenizer->encode("ab ab"), ElementsAre(1, kSpaceAb, kSpaceAb));
  EXPECT_THAT(tokenizer->encode("abb", false), ElementsAre(kSpaceAb, kB));
  EXPECT_THAT(tokenizer->encode("ab", TextReading{.add_special = false, .continues = true}),
              ElementsAre(kAb));
  EXPECT_THAT(tokenizer->encode("a\u00E9", false), ElementsAre(kSpaceA, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode("a</s>a", TextReading{.symbols = true}),
              ElementsAre(1, kSpaceA, 2, kSpaceA));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, kSpaceAb, kSpaceAb}), "ab ab");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3 + 0xC3, kA}), "\uFFFDa");
  v.flags = {{"add_space_prefix", false}};
  EXPECT_THAT(open(v)->encode("ab ab"), ElementsAre(1, kAb, kSpaceAb));
  EXPECT_EQ(open(v)->decode(std::vector<TokenId>{kSpaceAb}), " ab");
  v.scores.back() = 5;
  v.scores[kSpaceA] = -10;
  EXPECT_THAT(open(v)->encode(" ab", false), ElementsAre(kSpaceAb));
}

TEST_F(GgufTokenizer, user_defined_spaces_match_both_forms_of_a_space) {
  Vocabulary v = sentencepiece();
  v.tokens.push_back("  ");
  v.types.push_back(4);
  v.scores.push_back(0);
  v.flags = {{"add_space_prefix", false}};
  const TokenId two = kSpaceAb + 1;
  EXPECT_THAT(open(v)->encode("a  b", false), ElementsAre(kA, two, kB));
  EXPECT_THAT(open(v)->encode("a\u2581\u2581b", false), ElementsAre(kA, two, kB));
  EXPECT_THAT(open(v)->encode("a   b", false), ElementsAre(kA, two, kSpace, kB));
  EXPECT_EQ(open(v)->decode(std::vector<TokenId>{kA, two, kB}), "a  b");
}

TEST_F(GgufTokenizer, equal_scores_merge_the_leftmost_pair) {
  Vocabulary v = sentencepiece();
  v.tokens.back() = "x";
  v.scores.assign(v.tokens.size(), 0);
  EXPECT_THAT(open(v)->encode("ab", false), ElementsAre(kSpaceA, kB)) << "ab has a lower id";
}

TEST_F(GgufTokenizer, merges_never_produce_control_tokens) {
  Vocabulary v = sentencepiece();
  v.tokens.insert(v.tokens.end(), {"</", "s", ">", "</s", "s>"});
  for (int i = 0; i < 5; i++) v.types.push_back(1), v.scores.push_back(-1);
  v.scores[2] = 100;
  const std::vector<TokenId> ids = open(v)->encode("</s>", false);
  EXPECT_EQ(std::ranges::count(ids, 2), 0);
}

TEST_F(GgufTokenizer, ends_of_turns_are_found_by_key_and_name) {
  Vocabulary v;
  for (const char* const text : {"<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|call|>",
                                 "</s>", "<|eom", "_id|>"}) {
    v.tokens.push_back(text);
    v.types.push_back(1);
  }
  v.ids = {{"eos_token_id", 0}, {"eot_token_id", 1}, {"eom_token_id", 2}};
  EXPECT_THAT(open(v)->end_of_turn_ids(), ElementsAre(0, 1, 2, 6, 8, 9, 11, 12))
      << "<|end|> is within a turn where <|return|> and <|call|> end it; </s> may be HTML";
  v.merges.push_back("<|eom _id|>");
  EXPECT_THAT(open(v)->end_of_turn_ids(), ElementsAre(0, 1, 2, 6, 8, 11, 12))
      << "a token that merges make is text";
  v.types[13] = 3;
  EXPECT_THAT(open(v)->end_of_turn_ids(), ElementsAre(0, 1, 2, 6, 8, 11, 12, 13));
}

TEST_F(GgufTokenizer, phi_3_tokens_absorb_white_space) {
  Vocabulary v;
  v.tokens.push_back("<s>");
  v.types.push_back(3);
  EXPECT_THAT(open(v)->encode("<|im_end|> a<s> a", TextReading{.symbols = true}),
              ElementsAre(6, 3, 0, 8, 3, 0));
  v.name = "Phi-3 mini";
  EXPECT_THAT(open(v)->encode("<|im_end|> a<s> a", TextReading{.symbols = true}),
              ElementsAre(6, 0, 8, 3, 0));
}

TEST_F(GgufTokenizer, bytes_that_are_not_utf8_are_kept) {
  Vocabulary v;
  v.tokens.push_back("\u00FF");  // the symbol of byte FF
  v.types.push_back(1);
  const auto tokenizer = open(v);
  EXPECT_THAT(tokenizer->encode("a\xFF\xFF"
                                "b",
                                false),
              ElementsAre(0, 8, 8, 1));
  EXPECT_EQ(tokenizer->piece(8), "\xFF");
}

// GG26.
TEST_F(GgufTokenizer, refuses_arrays_of_other_types_or_lengths) {
  Vocabulary v;
  v.types.pop_back();
  EXPECT_THAT(refused(v), AllOf(HasSubstr("\"tokenizer.ggml.token_type\": found 7 elements"),
                                HasSubstr("8, as tokenizer.ggml.tokens has")));
  v = sentencepiece();
  v.scores.push_back(0);
  EXPECT_THAT(refused(v), HasSubstr("\"tokenizer.ggml.scores\": found 266 elements"));
  v.scores.pop_back();
  v.scores[kA] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refused(v), HasSubstr("found inf as score of token 260"));
  GgufBytes bytes;
  bytes.text("general.architecture", "llama").text("tokenizer.ggml.model", "gpt2");
  bytes.texts("tokenizer.ggml.tokens", {"a"});
  bytes.pair("tokenizer.ggml.token_type", 9, gguf_array(0, 1, std::string(1, '\1')));
  EXPECT_THAT(refused(bytes.bytes()), HasSubstr("found an array of u8, expected an array of i32"));
  bytes = GgufBytes();
  bytes.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
  bytes.texts("tokenizer.ggml.tokens", {"a"});
  bytes.pair("tokenizer.ggml.scores", 9, gguf_array(1, 1, std::string(1, '\1')));
  EXPECT_THAT(refused(bytes.bytes()),
              HasSubstr("found an array of 1 i8, expected an array of f32 or f64"));
  EXPECT_THAT(refused(GgufBytes()
                          .text("general.architecture", "llama")
                          .text("tokenizer.ggml.model", "gpt2")
                          .u32("tokenizer.ggml.tokens", 3)
                          .bytes()),
              HasSubstr("tokenizer.ggml.tokens"));
}

TEST_F(GgufTokenizer, refuses_unknown_models_and_patterns) {
  Vocabulary v;
  for (const char* const model : {"bert", "t5"}) {  // GG30: only t5 has a precompiled_charsmap
    v.model = model;
    EXPECT_THAT(refused(v), HasSubstr(fmt::format("found \"{}\", expected \"gpt2\", "
                                                  "\"llama\" or \"gemma4\"",
                                                  model)));
  }
  v.model = "";
  EXPECT_THAT(refused(v), HasSubstr("\"tokenizer.ggml.model\": found none"));
  v.model = "gpt2";
  v.pre = "new";
  EXPECT_THAT(refused(v), AllOf(HasSubstr("\"tokenizer.ggml.pre\": found \"new\", expected one of"),
                                HasSubstr("smollm")));
  v.pre = "";
  EXPECT_NE(open(v), nullptr);
  EXPECT_THAT(notices_,
              testing::Contains(HasSubstr("no tokenizer.ggml.pre: the default patterns")));
  v.tokens = {};
  EXPECT_THAT(refused(v), HasSubstr("tokenizer.ggml.tokens"));
}

// GG27.
TEST_F(GgufTokenizer, refuses_damaged_byte_tokens) {
  for (const char* const text : {"<0x-1>", "<0xZZ>", "<0x100>", "A"}) {
    Vocabulary v = sentencepiece();
    v.tokens[3 + 'A'] = text;
    EXPECT_THAT(refused(v), HasSubstr(fmt::format("found the byte token 68 = \"{}\"", text)));
    v.types[3 + 'A'] = 1;
    EXPECT_THAT(refused(v), HasSubstr("found no token \"<0x41>\""));
  }
}

// GG28.
TEST_F(GgufTokenizer, the_first_of_equal_texts_is_used) {
  Vocabulary v;
  v.tokens[2] = "a";
  EXPECT_THAT(open(v)->encode("a", false), ElementsAre(0));
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("1 texts occur more than once")));
  v.tokens[2] = "";
  EXPECT_THAT(open(v)->encode("ac", false), ElementsAre(0));
  v.tokens[2] = std::string(10'000'000, 'x');
  EXPECT_THAT(refused(v), HasSubstr("found 10000000 bytes in token 2, expected at most 4096"));
  v = {};
  v.tokens.resize(4'000'001);
  EXPECT_THAT(refused(v), HasSubstr("found 4000001 tokens, expected at most"));
}

// GG29.
TEST_F(GgufTokenizer, refuses_ids_outside_the_vocabulary) {
  for (const char* const key : {"bos_token_id", "eos_token_id", "padding_token_id",
                                "unknown_token_id", "eot_token_id", "eom_token_id"}) {
    for (const std::uint32_t id : {8u, 0xFFFFFFFFu}) {
      Vocabulary v;
      v.ids = {{key, id}};
      EXPECT_THAT(refused(v), HasSubstr(fmt::format(
                                  "\"tokenizer.ggml.{}\": found {}, expected 0 to 7", key, id)));
    }
  }
  Vocabulary v;
  v.flags = {{"add_bos_token", true}};
  EXPECT_THAT(refused(v),
              HasSubstr("\"tokenizer.ggml.add_bos_token\": found true, expected false"));
  v.flags = {{"add_eos_token", true}};
  EXPECT_THAT(refused(v), HasSubstr("no tokenizer.ggml.eos_token_id"));
}

// GG31.
TEST_F(GgufTokenizer, refuses_merges_by_index) {
  Vocabulary v;
  v.merges = {"a b", "ab"};
  EXPECT_THAT(refused(v), HasSubstr("found merge 1, \"ab\", expected two texts with a space"));
  v.merges = {"a b", "ab z"};
  EXPECT_THAT(refused(v), AllOf(HasSubstr("merge 1, \"ab z\""), HasSubstr("\"z\" is none")));
  v.merges = {"b a"};
  EXPECT_THAT(refused(v), HasSubstr("\"ba\" is none"));
  v.merges = {};
  EXPECT_THAT(refused(v), HasSubstr("\"tokenizer.ggml.merges\": found none"));
  v.merges.assign(5'000'000, "a b");
  EXPECT_THAT(refused(v), HasSubstr("found 5000000 merges, expected at most"));
}

TEST_F(GgufTokenizer, gemma_4_merges_whole_lines) {
  Vocabulary v = sentencepiece();
  v.model = "gemma4";
  v.merges = {"a b", "▁ ab"};
  v.ids = {{"bos_token_id", 1}, {"eos_token_id", 2}};
  const auto tokenizer = open(v);
  EXPECT_THAT(tokenizer->encode("ab ab\u00E9\n"),
              ElementsAre(1, kAb, kSpaceAb, 3 + 0xC3, 3 + 0xA9, 3 + '\n'));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{kSpace, kAb}), " ab");
}

}  // namespace
}  // namespace engine::test

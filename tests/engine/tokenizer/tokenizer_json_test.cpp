// tokenizer.json, tekken.json and files in tiktoken's form: damaged ones, and rules that the parity
// fixtures do not reach.
#include "engine/tokenizer/tokenizer_json.h"

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tiktoken.h"
#include "engine/tokenizer/tiktoken_models.h"
#include "engine/tokenizer/tokenizer_path.h"
#include "tests/support/files.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The members of a small tokenizer.json, each as JSON text.
struct Document {
  std::string type = R"("type":"BPE",)";
  std::string vocab = R"({"a":0,"b":1,"ab":2,"Ġ":3})", merges = R"([["a","b"]])", rules;
  std::string added = R"([{"id":4,"content":"<s>","special":true}])";
  std::string normalizer = "null",
              pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false})",
              post_processor = "null", decoder = R"({"type":"ByteLevel"})";

  std::string text() const {
    return fmt::format(
        R"({{"version":"1.0","added_tokens":{},"normalizer":{},"pre_tokenizer":{},"post_processor":{},)"
        R"("decoder":{},"model":{{{}"vocab":{},"merges":{}{}}}}})",
        added, normalizer, pre_tokenizer, post_processor, decoder, type, vocab, merges, rules);
  }
};

class TokenizerJson : public testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> open_text(const std::string& text,
                                             const std::string& name = "tokenizer.json",
                                             const FileLimits& limits = {}) {
    write_file(folder_ / name, text);
    notices_.clear();
    return open_tokenizer_at(folder_ / name, limits, notices_);
  }
  std::shared_ptr<const Tokenizer> open(const Document& document) {
    return open_text(document.text());
  }
  std::string refused(const Document& document) {
    return refusal([&] { open(document); });
  }
  std::string refused_text(const std::string& text, const std::string& name = "tokenizer.json") {
    return refusal([&] { open_text(text, name); });
  }

  Folder folder_;
  std::vector<std::string> notices_;
};

TEST_F(TokenizerJson, reads_a_small_document) {
  const auto tokenizer = open({});
  EXPECT_THAT(tokenizer->encode("ab a<s>", TextReading{.symbols = true}), ElementsAre(2, 3, 0, 4));
  EXPECT_EQ(tokenizer->vocab_size(), 5);
  EXPECT_THAT(notices_, IsEmpty());
}

// TJ01.
TEST_F(TokenizerJson, refuses_what_is_no_json) {
  EXPECT_THAT(refused_text("{"), HasSubstr("tokenizer.json: line 1, column 2"));
  EXPECT_THAT(refused_text(R"({"a":)" + std::string(100'000, '[')),
              HasSubstr("found more than 64 nested values"));
  Document d;
  d.vocab = R"({"a":0,"b":1,"ab":2,"a":3})";
  EXPECT_THAT(refused(d), HasSubstr("model.vocab.a: found the key twice"));
  d = {};
  d.type = R"("type":"BPE","type":"BPE",)";
  EXPECT_THAT(refused(d), HasSubstr("model.type: found the key twice"));
  FileLimits limits;
  limits.tokenizer_bytes = 100;
  EXPECT_THAT(refusal([&] { open_text(Document{}.text(), "tokenizer.json", limits); }),
              HasSubstr("expected at most 100"));
}

// TJ02.
TEST_F(TokenizerJson, refuses_other_models_by_name) {
  Document d;
  d.type = R"("type":"WordPiece",)";
  EXPECT_THAT(refused(d), HasSubstr("model.type: found \"WordPiece\", expected \"BPE\""));
  d.type = R"("type":"Unigram",)";
  d.vocab = R"([["a",0.5]])";
  EXPECT_THAT(refused(d), HasSubstr("found \"Unigram\""));
  d = {};
  d.type = "";
  EXPECT_NE(open(d), nullptr) << "an older file without a type, with merges";
  d.merges = "[]";
  EXPECT_THAT(refused(d), HasSubstr("model.type: found none"));
  EXPECT_THAT(refused_text("{}"), HasSubstr("model.type: found none"));
  d = {};
  d.rules = R"(,"end_of_word_suffix":"</w>")";
  EXPECT_THAT(refused(d), HasSubstr("model.end_of_word_suffix: found \"</w>\""));
  d.rules = R"(,"dropout":0.1)";
  EXPECT_THAT(refused(d), HasSubstr("model.dropout: found 0.1, expected null"));
}

// TJ03.
TEST_F(TokenizerJson, refuses_impossible_ids) {
  Document d;
  for (const char* const id : {"-1", "1099511627776", "1.5", "1e3"}) {
    d.vocab = fmt::format(R"({{"a":0,"b":1,"ab":{}}})", id);
    EXPECT_THAT(refused(d), HasSubstr(fmt::format("model.vocab.ab: found {}, expected an id", id)));
  }
  d.vocab = R"({"a":0,"b":1,"ab":3999999})";
  EXPECT_THAT(refused(d), HasSubstr("found the id 3999999, expected an id below 1036"));
  d.vocab = R"({"a":0,"b":1,"ab":1})";
  EXPECT_THAT(refused(d), HasSubstr("model.vocab.ab: found the id 1, which \"b\" has"));
  d.vocab = R"({"a":0,"b":1,"ab":5})";
  EXPECT_EQ(open(d)->vocab_size(), 6);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("model.vocab: 2 ids belong to no token")));
  EXPECT_EQ(open(d)->piece(3), "");
}

// TJ04.
TEST_F(TokenizerJson, refuses_merges_by_index) {
  Document d;
  d.merges = R"([["a","b"],["a","z"]])";
  EXPECT_THAT(refused(d), HasSubstr("model.merges.1: found \"z\""));
  d.merges = R"([["b","a"]])";
  EXPECT_THAT(refused(d), HasSubstr("model.merges.0: found \"ba\""));
  for (const char* const merge :
       {R"(["a"])", R"(["a","b","c"])", R"("ab")", R"("a b c")", "1", "[1,2]"}) {
    d.merges = fmt::format("[{}]", merge);
    EXPECT_THAT(refused(d), AllOf(HasSubstr("model.merges.0: found "), HasSubstr("two texts")));
  }
}

// TJ05.
TEST_F(TokenizerJson, both_forms_of_merges_are_equal) {
  Document d;
  const std::vector<TokenId> pairs = open(d)->encode("abab ab", false);
  d.merges = R"(["a b"])";
  EXPECT_EQ(open(d)->encode("abab ab", false), pairs);
  d.vocab = R"({"a":0," ":1,"a ":2})";
  d.merges = R"([["a"," "]])";
  d.pre_tokenizer = "null";
  EXPECT_THAT(open(d)->encode("a a", false), ElementsAre(2, 0)) << "a text with a space";
}

// TJ06.
TEST_F(TokenizerJson, added_tokens_have_ids_of_their_own) {
  Document d;
  d.added = R"([{"id":1,"content":"<s>"}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.0.id: found 1, which \"b\" has"));
  d.added = R"([{"id":4,"content":"<s>"},{"id":4,"content":"</s>"}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.1.id: found 4, which \"<s>\" has"));
  d.added = R"([{"id":4,"content":"<s>"},{"id":5,"content":"<s>"}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.1.content: found \"<s>\" again"));
  d.added = R"([{"id":4,"content":""}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.0.content: found no text"));
  d.added = R"([{"id":4000000,"content":"x"}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.0.id"));
  d.added = R"([{"id":0,"content":"b"}])";
  EXPECT_THAT(refused(d), HasSubstr("added_tokens.0.id: found 0, expected 1, the id of \"b\""));
  d.added = R"([{"id":1,"content":"b","special":true}])";
  EXPECT_THAT(open(d)->encode("ab", TextReading{.symbols = true}), ElementsAre(0, 1));
  EXPECT_TRUE(open(d)->is_special(1));
}

// TJ07.
TEST_F(TokenizerJson, refuses_damaged_patterns) {
  Document d;
  const auto with = [&](const std::string& pattern) {
    d.pre_tokenizer =
        R"({"type":"Split","behavior":"Isolated","pattern":{"Regex":")" + pattern + "\"}}";
  };
  with("(");
  EXPECT_THAT(refused(d), HasSubstr("pre_tokenizer.pattern.Regex: found the pattern \"(\""));
  with(std::string(1 << 20, 'a'));
  EXPECT_THAT(refused(d), HasSubstr("a pattern of 1048576 bytes"));
  with("(a+)+$");
  const auto tokenizer = open(d);
  EXPECT_THAT(refusal([&] { tokenizer->encode(std::string(50'000, 'a') + "b"); }),
              HasSubstr("match limit exceeded"));
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(2));
  d.pre_tokenizer = R"({"type":"Split","behavior":"Isolated","pattern":"a"})";
  EXPECT_THAT(refused(d), HasSubstr("pre_tokenizer.pattern: found \"a\""));
  d.pre_tokenizer = R"({"type":"Split","behavior":"Joined","pattern":{"String":"a"}})";
  EXPECT_THAT(refused(d), HasSubstr("pre_tokenizer.behavior: found \"Joined\""));
}

// TJ08.
TEST_F(TokenizerJson, refuses_unknown_steps_by_path) {
  Document d;
  d.normalizer = R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"BertNormalizer"}]})";
  EXPECT_THAT(refused(d), HasSubstr("normalizer.normalizers.1.type: found \"BertNormalizer\""));
  d = {};
  d.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})";
  EXPECT_THAT(refused(d), HasSubstr("pre_tokenizer.pretokenizers.0.type"));
  d = {};
  d.decoder = R"({"type":"CTC"})";
  EXPECT_THAT(refused(d), HasSubstr("decoder.type: found \"CTC\""));
  d = {};
  d.post_processor = R"({"type":"BertProcessing"})";
  EXPECT_THAT(refused(d), HasSubstr("post_processor.type: found \"BertProcessing\""));
  d = {};
  for (int i = 0; i < 1000; i++)
    d.normalizer = R"({"type":"Sequence","normalizers":[)" + d.normalizer + "]}";
  EXPECT_THAT(refused(d), HasSubstr("found more than 64 nested values"));
  d.normalizer = "[]";
  EXPECT_THAT(refused(d), HasSubstr("normalizer: found an array, expected an object"));
}

TEST_F(TokenizerJson, templates_add_tokens) {
  Document d;
  d.post_processor =
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"<s>","type_id":0}}],)"
      R"("special_tokens":{"<s>":{"id":"<s>","ids":[4],"tokens":["<s>","a"]}}})";
  EXPECT_THAT(open(d)->encode("b"), ElementsAre(4, 0, 1, 4, 0));
  EXPECT_THAT(open(d)->encode("b", false), ElementsAre(1));
  d.post_processor =
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<t>","type_id":0}}]})";
  EXPECT_THAT(refused(d), HasSubstr("post_processor.special_tokens: found no \"<t>\""));
}

TEST_F(TokenizerJson, refuses_a_second_template) {
  const std::string one =
      R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],)"
      R"("special_tokens":{}})";
  Document d;
  d.post_processor =
      fmt::format(R"({{"type":"Sequence","processors":[{},{{"type":"ByteLevel"}}]}})", one);
  EXPECT_THAT(open(d)->encode("b"), ElementsAre(1));
  d.post_processor = fmt::format(R"({{"type":"Sequence","processors":[{},{}]}})", one, one);
  EXPECT_THAT(refused(d), HasSubstr("found a second TemplateProcessing, expected one"));
}

TEST_F(TokenizerJson, digits_are_split_singly_or_from_other_text) {
  for (const bool each : {false, true}) {
    Document d;
    d.vocab = R"({"1":0,"2":1,"12":2,"Ġ":3})", d.merges = R"([["1","2"]])";
    d.pre_tokenizer = fmt::format(
        R"({{"type":"Sequence","pretokenizers":[{{"type":"Digits","individual_digits":{}}},)"
        R"({{"type":"ByteLevel","add_prefix_space":false}}]}})",
        each);
    EXPECT_EQ(open(d)->encode("12"), each ? std::vector<TokenId>({0, 1}) : std::vector<TokenId>{2});
  }
}

// TJ09. A SentencePiece model comes first.
TEST_F(TokenizerJson, another_size_than_tokenizer_model_is_noted) {
  std::filesystem::copy(DECOSCOPE_SOURCE_DIR "/tests/fixtures/tokenizers/unigram", folder_.path(),
                        std::filesystem::copy_options::recursive);
  const auto open_folder = [&] {
    notices_.clear();
    return open_tokenizer(folder_.path(), {}, notices_);
  };
  const int n = open_folder()->vocab_size();
  EXPECT_THAT(notices_, IsEmpty());
  write_file(folder_ / "tokenizer.json", Document{}.text());
  EXPECT_EQ(open_folder()->vocab_size(), n);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("5 tokens, but tokenizer.model")));
  std::filesystem::remove(folder_ / "tokenizer.model");
  EXPECT_TRUE(has_tokenizer(folder_.path()));
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_FALSE(has_tokenizer(folder_.path()));
}

// TJ10.
TEST_F(TokenizerJson, tokenizer_config_names_bos_and_eos) {
  write_file(folder_ / "tokenizer.json", Document{}.text());
  const auto with = [&](const std::string& config) {
    write_file(folder_ / "tokenizer_config.json", config);
    notices_.clear();
    return open_tokenizer(folder_.path(), {}, notices_);
  };
  EXPECT_EQ(with(R"({"bos_token":"<s>"})")->bos_id(), 4);
  EXPECT_EQ(with(R"({"bos_token":{"content":"<s>"}})")->bos_id(), 4);
  EXPECT_EQ(with(R"({"bos_token":null})")->bos_id(), std::nullopt);
  EXPECT_THAT(with(R"({"bos_token":"<s>"})")->encode("a"), ElementsAre(0));
  EXPECT_THAT(with(R"({"bos_token":"<s>","add_bos_token":true})")->encode("a"), ElementsAre(4, 0));
  EXPECT_THAT(with(R"({"eos_token":"b","add_eos_token":true,"bos_token":"<s>"})")->encode("a"),
              ElementsAre(0, 1));
  EXPECT_TRUE(with(R"({"eos_token":"b"})")->is_special(1));
  EXPECT_THAT(with(R"({"eos_token":"b"})")->end_of_turn_ids(), ElementsAre(1));
  EXPECT_THAT(refusal([&] { with(R"({"bos_token":"<none>"})"); }),
              AllOf(HasSubstr("tokenizer_config.json: bos_token: found \"<none>\""),
                    HasSubstr("a token of ")));
  EXPECT_THAT(refusal([&] { with(R"({"eos_token":7})"); }), HasSubstr("eos_token"));
}

constexpr std::string_view kDigits =  // of base64
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Tokens "AA== 0", "AQ== 1", ... of the 256 bytes, then `more`.
std::string tiktoken_lines(const std::vector<std::string>& more = {}) {
  std::string lines;
  for (std::size_t byte = 0; byte < 256; byte++)
    lines += fmt::format("{}{}== {}\n", kDigits[byte >> 2], kDigits[(byte & 3) << 4], byte);
  for (std::size_t i = 0; i < more.size(); i++) lines += fmt::format("{} {}\n", more[i], 256 + i);
  return lines;
}

TEST_F(TokenizerJson, tiktoken_files_of_unknown_models_are_refused) {
  EXPECT_TRUE(looks_like_tiktoken("IQ== 0\nIg== 1\n"));
  EXPECT_FALSE(looks_like_tiktoken("hello world"));
  EXPECT_FALSE(looks_like_tiktoken("\x0A\x0E"));
  EXPECT_THAT(
      refused_text(tiktoken_lines(), "x.tiktoken"),
      AllOf(HasSubstr("found 256 tokens, expected 128000 (Llama 3)"), HasSubstr("tokenizer.json")));
  EXPECT_THAT(refused_text("IQ== 0\nIg== 2\n", "x.tiktoken"),
              HasSubstr("line 2: found rank 2, expected 1"));
  EXPECT_THAT(refused_text("IQ== 0\nIQ== 1\n", "x.tiktoken"),
              HasSubstr("line 2: found a token again"));
  for (const char* const line : {"Ig=", "Ig== x", "Ig==", "=== 1", "I!== 1", "Ig== -1"})
    EXPECT_THAT(refused_text(fmt::format("IQ== 0\n{}\n", line), "x.tiktoken"),
                HasSubstr("line 2: "));
}

// A vocabulary of the size of Llama 3's: bytes, "ab", then texts of four digits, which are distinct
// while i is below 2^18.
TEST_F(TokenizerJson, llama_3_in_tiktoken_form) {
  std::vector<std::string> more = {"YWI="};
  while (more.size() < 128'000 - 256) {
    const std::size_t i = more.size();
    more.push_back(
        fmt::format("{}{}{}/", kDigits[i >> 12 & 63], kDigits[i >> 6 & 63], kDigits[i & 63]));
  }
  const auto tokenizer = open_text(tiktoken_lines(more), "tokenizer.model");
  EXPECT_EQ(tokenizer->vocab_size(), 128'256);
  EXPECT_THAT(tokenizer->encode("ab<|eot_id|>", TextReading{.symbols = true}),
              ElementsAre(128'000, 256, 128'009));
  EXPECT_EQ(tokenizer->eos_id(), 128'001);
  EXPECT_THAT(tokenizer->end_of_turn_ids(), ElementsAre(128'001, 128'008, 128'009));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{128'000, 256, 0xC3, 0xA9}), "ab\u00E9");
}

std::string tekken(const std::string& more = "", int size = 261, const char* pattern = "[a-z]+| ") {
  const std::string lines = tiktoken_lines({"YWI="});
  std::string vocab;
  std::size_t begin = 0;
  for (int rank = 0; begin < lines.size(); rank++) {
    const std::size_t space = lines.find(' ', begin);
    vocab += fmt::format(R"({}{{"rank":{},"token_bytes":"{}","token_str":null}})", rank ? "," : "",
                         rank, lines.substr(begin, space - begin));
    begin = lines.find('\n', begin) + 1;
  }
  return fmt::format(
      R"({{"config":{{"pattern":"{}","default_vocab_size":{},"default_num_special_tokens":4}},"vocab":[{}]{}}})",
      pattern, size, vocab, more);
}

TEST_F(TokenizerJson, tekken_files_have_their_special_tokens_first) {
  const auto tokenizer = open_text(tekken(), "tekken.json");
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_THAT(tokenizer->encode("ab[INST]b", TextReading{.symbols = true}),
              ElementsAre(1, 260, 3, 4 + 'b'));
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_THAT(tokenizer->encode("[INST]", false), testing::SizeIs(6));
  const std::string list = R"(,"special_tokens":[{"rank":0,"token_str":"<x>","is_control":true}])";
  EXPECT_EQ(open_text(tekken(list), "tekken.json")->piece(0), "<x>");
  EXPECT_EQ(open_text(tekken(list), "tekken.json")->piece(1), "<SPECIAL_1>");
  EXPECT_EQ(open_text(tekken("", 250), "tekken.json")->vocab_size(), 250) << "the rest is spare";
  EXPECT_THAT(refused_text(tekken("", 300), "tekken.json"),
              HasSubstr("vocab: found 257 tokens, expected 296, as config says"));
  EXPECT_THAT(refused_text(tekken("", 261, ""), "tekken.json"),
              HasSubstr("config.pattern: found none"));
  EXPECT_THAT(refused_text(tekken("", 261, "("), "tekken.json"), HasSubstr("config.pattern"));
  EXPECT_THAT(refused_text(R"({"vocab":[]})", "tekken.json"), HasSubstr("config: found none"));
  EXPECT_THAT(
      refused_text(tekken(R"(,"special_tokens":[{"rank":9,"token_str":"x"}])"), "tekken.json"),
      HasSubstr("special_tokens.0.rank"));
}

// Every prefix of a file is refused or opens; none ends the process.
TEST_F(TokenizerJson, cut_files_are_refused) {
  const std::string text = Document{}.text();
  for (std::size_t n = 0; n < text.size(); n++) refused_text(text.substr(0, n));
  const std::string lines = tiktoken_lines();
  for (std::size_t n = 0; n < 200; n += 3) refused_text(lines.substr(0, n), "x.tiktoken");
}

TEST(TiktokenModels, have_distinct_special_tokens) {
  for (const std::int64_t n : {128'000, 200'000, 151'643, 248'044}) {
    std::vector<std::string> names = tiktoken_model_of(n)->special;
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  }
  EXPECT_EQ(tiktoken_model_of(128'000)->special.size(), 256u);
  EXPECT_EQ(tiktoken_model_of(200'000)->special.size(), 2048u);
}

}  // namespace
}  // namespace engine::test

// Splitting text at added tokens, and the JSON files beside a tokenizer.model.
#include "engine/tokenizer/added_tokens.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Formats parts as "text|<7>covered|text": an added token has its id, then the text that it
/// covers.
std::string shown(const std::vector<TextPart>& parts) {
  std::string out;
  for (const TextPart& part : parts) {
    if (!out.empty()) out += '|';
    if (part.id) out += fmt::format("<{}>", *part.id);
    out += part.text;
  }
  return out;
}

AddedToken token(TokenId id, const std::string& content) {
  AddedToken made;
  made.id = id;
  made.content = content;
  return made;
}

std::string split(AddedToken one, const std::string& text) {
  return shown(AddedTokens({std::move(one)}).split(text, AddedTokens::Of::GivenText, false));
}

TEST(AddedTokens, the_leftmost_longest_match_is_taken) {
  const AddedTokens tokens({token(5, "ab"), token(6, "abc"), token(7, "bcd")});
  const auto of = [&](const char* text) {
    return shown(tokens.split(text, AddedTokens::Of::GivenText, false));
  };
  EXPECT_EQ(of("xabcdab"), "x|<6>abc|d|<5>ab");
  EXPECT_EQ(of("bcd"), "<7>bcd");
  EXPECT_EQ(of("a"), "a");
  EXPECT_EQ(of(""), "");
}

TEST(AddedTokens, strip_flags_absorb_adjacent_white_space) {
  AddedToken t = token(1, "T");
  EXPECT_EQ(split(t, "a T b"), "a |<1>T| b");
  t.lstrip = true;
  EXPECT_EQ(split(t, "a \n\xC2\xA0T b"), "a|<1> \n\xC2\xA0T| b");
  EXPECT_EQ(split(t, "T T"), "<1>T|<1> T");
  t.rstrip = true;
  EXPECT_EQ(split(t, "a T \t b"), "a|<1> T \t |b");
  EXPECT_EQ(split(t, "T T"), "<1>T |<1>T");
}

TEST(AddedTokens, white_space_is_measured_once) {
  AddedToken t = token(1, " ");
  t.lstrip = t.rstrip = true;
  const AddedTokens tokens({t});
  const std::string text(
      200'000,
      ' ');  // each match covers the rest: a quadratic search would take a second per character
  EXPECT_EQ(tokens.split(text, AddedTokens::Of::GivenText, false).size(), text.size());
}

TEST(AddedTokens, single_word_tokens_need_word_boundaries) {
  AddedToken t = token(1, "word");
  t.single_word = true;
  EXPECT_EQ(split(t, "word, word"), "<1>word|, |<1>word");
  for (const std::string text :
       {"words", "aword", "word_", "1word", "word\xCC\x81", "\xE6\x97\xA5word"})
    EXPECT_EQ(split(t, text), text);
}

TEST(AddedTokens, special_tokens_can_be_read_as_text) {
  AddedToken special = token(1, "<s>");
  special.special = true;
  const AddedTokens tokens({special, token(2, "<tool>")});
  EXPECT_EQ(shown(tokens.split("<s><tool>", AddedTokens::Of::GivenText, true)), "<s>|<2><tool>");
  EXPECT_EQ(shown(tokens.split("<s><tool>", AddedTokens::Of::GivenText, false)),
            "<1><s>|<2><tool>");
}

TEST(AddedTokens, normalized_tokens_match_normalised_text) {
  AddedToken t = token(1, "two words");
  t.normalized = true;
  const AddedTokens tokens({t}, [](std::string text) {
    std::ranges::replace(text, ' ', '_');
    return text;
  });
  EXPECT_TRUE(tokens.any(AddedTokens::Of::NormalizedText));
  EXPECT_FALSE(tokens.any(AddedTokens::Of::GivenText));
  EXPECT_EQ(shown(tokens.split("a_two_words", AddedTokens::Of::NormalizedText, false)),
            "a_|<1>two_words");
}

/// The small model's folder with these files; its tokenizer.model has `n_pieces()` pieces.
class TokenizerFiles : public testing::Test {
 protected:
  TokenizerFiles() { write_small_model(dir_); }
  static int n_pieces() { return static_cast<int>(small_pieces().size()); }
  void write(const std::string& name, const std::string& text) { write_file(dir_ / name, text); }
  ModelFiles open() const { return open_model(dir_.path()); }
  std::vector<TokenId> read(const std::string& text) const {
    return open().tokenizer->encode(text, TextReading{.add_special = false, .symbols = true});
  }

  Folder dir_;
};

TEST_F(TokenizerFiles, added_tokens_json_extends_the_vocabulary) {
  const int n = n_pieces();
  write("added_tokens.json", fmt::format(R"({{"<|im_start|>": {}, "<|im_end|>": {}}})", n, n + 2));
  const ModelFiles files = open();
  EXPECT_THAT(files.notices, IsEmpty());
  EXPECT_EQ(files.tokenizer->vocab_size(), n + 3);
  EXPECT_EQ(files.tokenizer->piece(n + 1), "") << "no token has this id";
  EXPECT_EQ(read("<|im_end|><|im_start|><s>"), (std::vector<TokenId>{n + 2, n, 1}));
  const std::vector<TokenId> plain = files.tokenizer->encode("a<s>", false);
  EXPECT_THAT(plain, Not(Contains(1))) << "read as text if symbols are off";
  EXPECT_EQ(files.tokenizer->decode(plain), "a<s>");
}

TEST_F(TokenizerFiles, special_added_tokens_decode_to_nothing) {
  const int n = n_pieces();
  write("tokenizer_config.json",
        fmt::format(R"({{"added_tokens_decoder": {{"{}": {{"content": "<x>", "special": true}},)"
                    R"( "{}": {{"content": "<y>", "special": false}}}}}})",
                    n, n + 1));
  const auto tokenizer = open().tokenizer;
  EXPECT_TRUE(tokenizer->is_special(n));
  EXPECT_EQ(tokenizer->piece(n), "<x>");
  EXPECT_FALSE(tokenizer->is_special(n + 1));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{n, n + 1, n}), "<y>");
}

TEST_F(TokenizerFiles, added_tokens_decoder_precedes_older_files) {
  const int n = n_pieces();
  write("tokenizer_config.json",
        fmt::format(R"({{"added_tokens_decoder": {{"{}": {{"content": "<x>"}}}},)"
                    R"( "bos_token": "<s>"}})",
                    n));
  write("added_tokens.json", fmt::format(R"({{"<x>": {}}})", n));
  write("special_tokens_map.json", R"({"bos_token": {"content": "<s>"}})");
  EXPECT_THAT(open().notices, IsEmpty()) << "the older files agree";
  write("added_tokens.json", fmt::format(R"({{"<x>": {}, "<y>": {}}})", n, n + 1));
  write("special_tokens_map.json", R"({"bos_token": "</s>"})");
  EXPECT_EQ(open().tokenizer->vocab_size(), n + 1);
  EXPECT_EQ(open().tokenizer->bos_id(), 1);
  EXPECT_THAT(open().notices,
              ElementsAre(HasSubstr("special_tokens_map.json: not applied: bos_token"),
                          HasSubstr("added_tokens.json: not applied: \"<y>\"")));
}

TEST_F(TokenizerFiles, special_tokens_map_works_without_a_decoder) {
  write("special_tokens_map.json", R"({"bos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(open().tokenizer->bos_id(), 2);
}

TEST_F(TokenizerFiles, unsupported_fields_are_named) {
  write("tokenizer_config.json",
        R"({"chat_template": "x", "padding_side": "left", "clean_up_tokenization_spaces": true,)"
        R"( "sp_model_kwargs": {}, "model_max_length": 1000000000000000019884624838656,)"
        R"( "tokenizer_class": "LlamaTokenizer", "add_prefix_space": false, "pad_token": null})");
  EXPECT_THAT(open().notices,
              ElementsAre(HasSubstr("tokenizer_config.json: not applied: padding_side, "
                                    "clean_up_tokenization_spaces")));
}

TEST_F(TokenizerFiles, a_tokenizer_class_with_own_rules_is_noted) {
  write("tokenizer_config.json", R"({"tokenizer_class": "T5TokenizerFast"})");
  EXPECT_THAT(open().notices,
              ElementsAre(HasSubstr(
                  "tokenizer_class \"T5Tokenizer\": the rules of this class are not applied")));
  for (const char* name : {"LlamaTokenizer", "PreTrainedTokenizerFast", "CodeLlamaTokenizer"}) {
    write("tokenizer_config.json", fmt::format(R"({{"tokenizer_class": "{}"}})", name));
    EXPECT_THAT(open().notices, IsEmpty()) << name;
  }
}

TEST_F(TokenizerFiles, a_piece_may_have_another_name) {
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"2": {"content": "<|im_end|>"}}})");
  EXPECT_THAT(open().notices,
              Contains(AllOf(HasSubstr("added_tokens_decoder.2: piece 2 of tokenizer.model"),
                             HasSubstr("\"</s>\", is renamed to \"<|im_end|>\""))));
  EXPECT_EQ(read("<|im_end|>"), (std::vector<TokenId>{2}));
}

TEST_F(TokenizerFiles, contradicting_ids_are_refused) {
  const auto refused_with = [&](const std::string& added) {
    write("added_tokens.json", added);
    return refusal([&] { open(); });
  };
  EXPECT_THAT(refused_with(R"({"<s>": 280})"),
              AllOf(HasSubstr("added_tokens.json: \"<s>\": found the id 280"),
                    HasSubstr("expected 1, its id in tokenizer.model; use that id, or remove the "
                              "token from this file")));
  EXPECT_THAT(refused_with(R"({"<x>": 290, "<y>": 290})"),
              HasSubstr("\"<y>\": found the id 290, expected another one, as it is that of "));
  EXPECT_THAT(refused_with(R"({"<x>": 9223372036854775807})"), HasSubstr("an id below 4000000"));
  for (const char* id : {"-1", "1.5", "\"7\"", "null", "[]", "1e3", "99999999999999999999"})
    EXPECT_THAT(refused_with(fmt::format(R"({{"<x>": {}}})", id)), HasSubstr("a token id")) << id;
}

TEST_F(TokenizerFiles, very_long_tokens_are_refused) {
  write("added_tokens.json", fmt::format(R"({{"{}": 290}})", std::string(4097, 'a')));
  EXPECT_THAT(refusal([&] { open(); }), HasSubstr("found 4097 bytes, expected at most 4096"));
}

TEST_F(TokenizerFiles, more_tokens_than_embeddings_are_refused) {
  write("added_tokens.json", R"({"<x>": 300})");  // the embedding has 300 rows
  EXPECT_THAT(refusal([&] { open(); }),
              AllOf(HasSubstr("301 tokens in the tokenizer"), HasSubstr("300 rows")));
}

TEST_F(TokenizerFiles, an_eos_missing_from_the_config_is_noted) {
  write("generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_THAT(open().notices, Contains(AllOf(HasSubstr("eos_token is \"</s>\", id 2"),
                                             HasSubstr("ends there and at 7"))));
}

TEST_F(TokenizerFiles, null_means_no_token_or_false) {
  write("tokenizer_config.json", R"({"add_bos_token": null, "bos_token": null})");
  EXPECT_EQ(open().tokenizer->bos_id(), std::nullopt);
  EXPECT_EQ(open().tokenizer->encode("a").size(), 1u);
}

TEST_F(TokenizerFiles, are_written_with_the_model) {
  write("added_tokens.json", fmt::format(R"({{"<x>": {}}})", n_pieces()));
  const ModelFiles files = open();
  const Folder copy;
  write_model(copy.path(), files.config, *files.tensors, files.stored_dtype, dir_.path());
  EXPECT_EQ(open_model(copy.path()).tokenizer->vocab_size(), n_pieces() + 1);
}

// A text that starts with a space gets no dummy prefix, except in legacy mode.
TEST_F(TokenizerFiles, no_dummy_prefix_before_a_space) {
  write_file(dir_ / "tokenizer.model",
             sentencepiece_model(small_pieces(), trainer_spec(), normalizer_spec(true, false)));
  const auto n_ids = [&](const std::string& legacy) {
    write("tokenizer_config.json", R"({"legacy": )" + legacy + "}");
    return read(" zz").size();
  };
  EXPECT_EQ(n_ids("false") + 1, n_ids("true"));
}

TEST_F(TokenizerFiles, control_piece_flags_need_added_tokens_decoder) {
  const std::string token = R"({"content": "</s>", "lstrip": true, "normalized": false})";
  write("special_tokens_map.json", R"({"eos_token": )" + token + "}");
  const std::size_t n_plain = read("z </s>").size();
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"2": )" + token + "}}");
  EXPECT_EQ(read("z </s>").size() + 1, n_plain) << "it absorbs the space";
}

TEST_F(TokenizerFiles, continued_text_gets_no_prefix) {
  write_file(dir_ / "tokenizer.model",
             sentencepiece_model(small_pieces(), trainer_spec(), normalizer_spec(true, false)));
  for (const char* config : {"{}", R"({"tokenizer_class": "LlamaTokenizer"})"}) {
    write("tokenizer_config.json", config);
    const auto tokenizer = open().tokenizer;
    const auto ids = [&](bool continues) {
      return tokenizer->encode("zz", TextReading{.add_special = false, .continues = continues});
    };
    const std::vector<TokenId> start = ids(false), after = ids(true);
    EXPECT_EQ(start.size(), after.size() + 1) << config;
    EXPECT_EQ(continuation_text(*tokenizer, start, after), "zz") << config;
  }
}

}  // namespace
}  // namespace engine::test

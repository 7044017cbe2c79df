// Cases SP01 to SP13 (SentencePiece models), tokenizers trained by the test, and text streams.
#include <bit>
#include <filesystem>
#include <limits>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> open_bytes(std::string_view bytes) {
  const Folder dir;
  write_file(dir / "tokenizer.model", bytes);
  return open_sentencepiece(dir / "tokenizer.model", {.add_bos = false});
}

std::string refused(std::string_view bytes) {
  const std::string message = refusal([&] { open_bytes(bytes); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("tokenizer.model: "), HasSubstr("found "), HasSubstr("expected ")));
  return message;
}

std::string model_of(const std::vector<Piece>& pieces, bool byte_fallback = false) {
  return sentencepiece_model(pieces, trainer_spec(byte_fallback), normalizer_spec(false, false));
}

std::string plain_model(std::vector<Piece> more) {
  std::vector<Piece> pieces = {
      {"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}, {"a", -1}, {"b", -2}};
  pieces.insert(pieces.end(), more.begin(), more.end());
  return model_of(pieces);
}

// SP01.
TEST(SentencePiece, other_file_kinds_are_refused_by_name) {
  const auto is_no_model =
      AllOf(HasSubstr("not a SentencePiece model"), testing::ContainsRegex("byte [0-9]+"));
  EXPECT_THAT(refused(""), is_no_model);
  EXPECT_THAT(refused("x"), is_no_model);
  EXPECT_THAT(refused("Once upon a time there was a text file."), is_no_model);
  EXPECT_THAT(refused("version https://git-lfs.github.com/spec/v1\n"),
              AllOf(is_no_model, HasSubstr("Git LFS pointer")));
  std::mt19937 random(1);
  for (int round = 0; round < 200; round++) {
    std::string noise(4096, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    refused(noise);
  }
}

// SP02.
TEST(SentencePiece, every_prefix_is_refused_or_a_valid_model) {
  const std::string whole = small_sentencepiece();
  const Folder dir;
  int n_accepted = 0;
  write_file(dir / "m", whole);
  for (std::size_t n = whole.size() + 1; n-- > 0;) {
    std::filesystem::resize_file(dir / "m", n);
    try {
      n_accepted += open_sentencepiece(dir / "m", {})->vocab_size() > 0;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
    }
  }
  EXPECT_GE(n_accepted, 1);
}

// SP03.
TEST(SentencePiece, a_broken_wire_format_is_refused_with_its_offset) {
  EXPECT_THAT(refused("\x08" + std::string(11, '\xff')),
              AllOf(HasSubstr("byte 1:"), HasSubstr("more than 10 bytes")));
  EXPECT_THAT(refused("\x0a" + varint(1ull << 63)),
              AllOf(HasSubstr("byte 1:"), HasSubstr("9223372036854775808")));
  EXPECT_THAT(refused(proto_varint(1, 5)), AllOf(HasSubstr("byte 0:"), HasSubstr("wire type 0")));
  EXPECT_THAT(refused(std::string("\x02\x00", 2)),
              AllOf(HasSubstr("byte 0:"), HasSubstr("field number 0")));
  EXPECT_THAT(refused(std::string(10'000, '\x0b')),
              AllOf(HasSubstr("byte 0:"), HasSubstr("wire type 3")));
  EXPECT_THAT(refused(proto_bytes(1, proto_varint(1, 5))), HasSubstr("byte 2:"));
}

// SP04.
TEST(SentencePiece, pieces_without_a_valid_vocabulary_are_refused) {
  EXPECT_THAT(refused(proto_bytes(2, trainer_spec(false))), HasSubstr("no pieces"));
  EXPECT_THAT(refused(model_of({{"a"}, {"b"}})), HasSubstr("no unknown piece"));
  EXPECT_THAT(refused(plain_model({{"<unk2>", 0, 2}})),
              HasSubstr("piece 5: found a second unknown"));
  EXPECT_THAT(refused(plain_model({{"a"}})),
              AllOf(HasSubstr("piece 5: found \"a\""), HasSubstr("piece 3")));
  EXPECT_THAT(refused(plain_model({{""}})), HasSubstr("piece 5: found an empty piece"));
}

// SP05.
TEST(SentencePiece, very_long_pieces_are_refused) {
  for (const std::size_t n : {100'000u, 500'000u, 4'000'000u}) {
    EXPECT_THAT(refused(plain_model({{std::string(n, 'a')}})),
                HasSubstr(fmt::format("piece 5: found {} bytes", n)));
  }
  const auto longest = open_bytes(plain_model({{std::string(4096, 'a'), 0, 4}}));
  EXPECT_EQ(longest->encode(std::string(4096, 'a'), false), (std::vector<TokenId>{5}));
}

// SP06.
TEST(SentencePiece, a_piece_may_be_one_nul_byte) {
  for (const int type : {1, 4}) {
    for (const int model_type : {1, 2}) {
      std::vector<Piece> pieces = {{"<unk>", 0, 2}, {"a", -1}, {std::string(1, '\0'), -2, type}};
      const auto tokenizer = open_bytes(sentencepiece_model(pieces, trainer_spec(false, model_type),
                                                            normalizer_spec(false, false)));
      const std::string text("a\0a", 3);
      EXPECT_EQ(tokenizer->encode(text, false), (std::vector<TokenId>{1, 2, 1}));
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false)), text);
    }
  }
}

// SP07.
TEST(SentencePiece, byte_pieces_must_match_byte_fallback) {
  std::vector<Piece> pieces = small_pieces();
  pieces.erase(pieces.begin() + 3 + 0x41);
  EXPECT_THAT(refused(model_of(pieces, true)), HasSubstr("<0x41>"));
  EXPECT_THAT(refused(model_of(small_pieces(), false)),
              AllOf(HasSubstr("piece 3 \"<0x00>\""), HasSubstr("byte_fallback")));
  EXPECT_THAT(refused(plain_model({{"<0xZZ>", 0, 6}})), HasSubstr("piece 5 \"<0xZZ>\""));
}

// SP08.
TEST(SentencePiece, scores_must_be_finite) {
  for (const float score :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(refused(plain_model({{"c", score}})), HasSubstr("piece 5: score: found "));
  }
}

/// The pieces into which the SentencePiece library splits a text.
std::vector<std::string> library_pieces(const std::string& model, const std::string& text) {
  sentencepiece::SentencePieceProcessor library;
  EXPECT_TRUE(library.LoadFromSerializedProto(model).ok());
  std::vector<std::string> pieces;
  EXPECT_TRUE(library.Encode(text, &pieces).ok());
  return pieces;
}

std::vector<std::string> our_pieces(const std::string& model, const std::string& text) {
  const auto tokenizer = open_bytes(model);
  std::vector<std::string> pieces;
  for (const TokenId id : tokenizer->encode(text, false)) pieces.push_back(tokenizer->piece(id));
  return pieces;
}

// SP08.
TEST(SentencePiece, equal_scores_merge_the_leftmost_pair) {
  const std::vector<std::vector<Piece>> orders = {
      {{"<unk>", 0, 2}, {"a"}, {"b"}, {"aa"}, {"ab"}},   // the leftmost pair has the lowest id,
      {{"<unk>", 0, 2}, {"a"}, {"b"}, {"ab"}, {"aa"}}};  // the leftmost pair has the highest id
  for (const std::vector<Piece>& pieces : orders) {
    const std::string model = model_of(pieces);
    EXPECT_EQ(our_pieces(model, "aab"), (std::vector<std::string>{"aa", "b"}));
    EXPECT_EQ(our_pieces(model, "baab"), (std::vector<std::string>{"b", "aa", "b"}));
    EXPECT_EQ(library_pieces(model, "aab"), our_pieces(model, "aab"));
    EXPECT_EQ(library_pieces(model, "baab"), our_pieces(model, "baab"));
  }
}

// SP08.
TEST(SentencePiece, equal_unigram_paths_end_in_the_longest_piece) {
  for (const bool swapped : {false, true}) {
    std::vector<Piece> pieces = {{"<unk>", 0, 2}, {"a", -1}, {"b", -1}, {"aa", -1}, {"ab", -1}};
    if (swapped) std::swap(pieces[3], pieces[4]);
    const std::string model =
        sentencepiece_model(pieces, trainer_spec(false, 1), normalizer_spec(false, false));
    EXPECT_EQ(our_pieces(model, "aab"), (std::vector<std::string>{"a", "ab"}));
    EXPECT_EQ(library_pieces(model, "aab"), our_pieces(model, "aab"));
  }
}

std::string u32(std::uint32_t value) {
  std::string out;
  for (int i = 0; i < 4; i++) out += static_cast<char>(value >> (8 * i));
  return out;
}

// A double-array trie of 512 units that maps "A" to the replacement at offset `value`. The root's
// children are at 256 ^ c, those of 'A' and its value at `base`. The unit of 'A' stores the
// character `label`.
std::string charsmap(std::uint32_t value, std::uint32_t base, std::uint32_t label = 'A') {
  std::vector<std::uint32_t> units(512, 0xffu | 0x80000000u);
  units[0] = 256u << 10;
  const std::uint32_t at = 256 ^ 'A';
  units[at] = ((at ^ base) << 10) | (1u << 8) | label;
  if (base < units.size()) units[base] = value | 0x80000000u;
  std::string trie;
  for (const std::uint32_t unit : units) trie += u32(unit);
  return u32(static_cast<std::uint32_t>(trie.size())) + trie + std::string("b\0", 2);
}

// SP09.
TEST(SentencePiece, normaliser_tables_are_checked_before_use) {
  const std::vector<Piece> pieces = {{"<unk>", 0, 2}, {"a", -1}, {"b", -2}};
  const auto with = [&](const std::string& table) {
    return sentencepiece_model(pieces, trainer_spec(false), normalizer_spec(false, false, table));
  };
  EXPECT_EQ(open_bytes(with(charsmap(0, 3)))->encode("aA", false), (std::vector<TokenId>{1, 2}));
  const auto is_named = HasSubstr("normalizer_spec.precompiled_charsmap: found ");
  EXPECT_THAT(refused(with("\x01")), is_named);
  EXPECT_THAT(refused(with(u32(0) + "abcd")), is_named);
  EXPECT_THAT(refused(with(replaced(charsmap(0, 3), u32(2048), u32(2047)))), is_named);
  EXPECT_THAT(refused(with(replaced(charsmap(0, 3), u32(2048), u32(4096)))), is_named);
  EXPECT_THAT(refused(with(charsmap(0, 1 << 15))),
              AllOf(is_named, HasSubstr("there are 512 units")));
  EXPECT_THAT(refused(with(charsmap(2, 3))), AllOf(is_named, HasSubstr("replacement at 2")));
  std::string unended = charsmap(0, 3);
  unended.back() = 'c';
  EXPECT_THAT(refused(with(unended)), AllOf(is_named, HasSubstr("NUL")));

  // 'A' leads back to the root's children, so "A", "AA", "AAA", ... never end.
  EXPECT_THAT(refused(with(charsmap(0, 256))), AllOf(is_named, HasSubstr("its own descendant")));
}

// The keys "A", "AA", ... of 1 to n letters, each replaced by "b": node i has its children in the
// block of 256 units after its own.
std::string charsmap_of_prefixes(std::uint32_t n) {
  std::vector<std::uint32_t> units(256 * (n + 2), 0xffu | 0x80000000u);
  units[0] = 256u << 10;
  for (std::uint32_t i = 1; i <= n; i++) {
    const std::uint32_t at = (256 * i) ^ 'A', base = 256 * (i + 1);
    units[at] = ((at ^ base) << 10) | (1u << 8) | 'A';
    units[base] = 0x80000000u;
  }
  std::string trie;
  for (const std::uint32_t unit : units) trie += u32(unit);
  return u32(static_cast<std::uint32_t>(trie.size())) + trie + std::string("b\0", 2);
}

// SP09.
TEST(SentencePiece, at_most_32_normaliser_keys_may_be_nested) {
  const auto with = [&](const std::string& table) {
    return sentencepiece_model({{"<unk>", 0, 2}, {"a", -1}, {"b", -2}}, trainer_spec(false),
                               normalizer_spec(false, false, table));
  };
  const auto tokenizer = open_bytes(with(charsmap_of_prefixes(32)));
  const auto encoded = [&](int n) {
    return tokenizer->encode("a" + std::string(static_cast<std::size_t>(n), 'A'), false);
  };
  for (const int n : {1, 31, 32}) EXPECT_EQ(encoded(n), (std::vector<TokenId>{1, 2})) << n;
  EXPECT_EQ(encoded(33), (std::vector<TokenId>{1, 2, 2}));
  for (const std::uint32_t n : {33u, 100u}) {
    EXPECT_THAT(
        refused(with(charsmap_of_prefixes(n))),
        HasSubstr(fmt::format("normalizer_spec.precompiled_charsmap: found a chain of {} keys, "
                              "each a prefix of the next, more than 32",
                              n)));
  }
}

// SP10.
TEST(SentencePiece, other_model_types_are_refused_by_name) {
  const auto of_type = [](int type) {
    return sentencepiece_model({{"<unk>", 0, 2}, {"a"}}, trainer_spec(false, type),
                               normalizer_spec(false, false));
  };
  EXPECT_THAT(refused(of_type(3)), AllOf(HasSubstr("trainer_spec.model_type"), HasSubstr("WORD")));
  EXPECT_THAT(refused(of_type(4)), AllOf(HasSubstr("trainer_spec.model_type"), HasSubstr("CHAR")));
  EXPECT_THAT(refused(of_type(9)),
              AllOf(HasSubstr("trainer_spec.model_type"), HasSubstr("9 (unknown)")));
}

// SP11.
TEST(SentencePiece, special_ids_out_of_range_are_refused) {
  const std::pair<int, const char*> fields[] = {{40, "unk_id"}, {41, "bos_id"}, {42, "eos_id"}};
  for (const auto& [number, name] : fields) {
    for (const std::uint64_t id :
         {std::uint64_t{5}, std::uint64_t{0x7fffffff}, ~std::uint64_t{1}}) {
      const std::string spec = trainer_spec(false) + proto_varint(number, id);
      EXPECT_THAT(refused(sentencepiece_model({{"<unk>", 0, 2}, {"a"}}, spec,
                                              normalizer_spec(false, false))),
                  HasSubstr(fmt::format("trainer_spec.{}: found ", name)));
    }
  }
}

// SP12.
TEST(SentencePiece, unknown_fields_are_skipped) {
  const std::string future =
      proto_varint(900, 7) + proto_bytes(901, "new") + varint(902 << 3 | 1) + "12345678";
  const auto tokenizer =
      open_bytes(future + small_sentencepiece() + future + proto_bytes(2, future));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the cat", false)), "the cat");
}

// SP13.
TEST(SentencePiece, the_longest_of_nested_symbols_is_taken) {
  std::vector<Piece> symbols;
  for (std::size_t n = 2; n <= 300; n++) symbols.push_back({std::string(n, 'a'), 0, 4});
  const auto tokenizer = open_bytes(plain_model(symbols));
  const auto id_of = [](int n) { return n == 1 ? 3 : 3 + n; };  // "a" is 3, "aa" 5, ...
  EXPECT_EQ(tokenizer->encode(std::string(299, 'a') + "b", false),
            (std::vector<TokenId>{id_of(299), 4}));
  EXPECT_EQ(tokenizer->encode(std::string(702, 'a'), false),
            (std::vector<TokenId>{id_of(300), id_of(300), id_of(102)}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(std::string(702, 'a') + "bab", false)),
            std::string(702, 'a') + "bab");
}

// A tokenizer trained like the bundled models': BPE, single digits, byte fallback, newline as a
// symbol.
std::string trained(const std::string& more_options) {
  const Folder dir;
  std::string text;
  for (int i = 0; i < 400; i++) {
    text += fmt::format("Tom has {} apples and {} pears.\nSo the answer is {}.\n", i, 7 * i % 50,
                        i + 7 * i % 50);
    text += "def add(a, b):\n    return a + b  # caf\xC3\xA9\n";
  }
  write_file(dir / "text", text);
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      fmt::format("--input={} --model_prefix={} --vocab_size=360 --split_digits=true "
                  "--byte_fallback=true --user_defined_symbols=\n --minloglevel=2 {}",
                  dir / "text", dir / "m", more_options));
  EXPECT_TRUE(status.ok()) << status.ToString();
  return read_file(dir / "m.model");
}

constexpr const char* kOurs =
    "--model_type=bpe --normalization_rule_name=identity --add_dummy_prefix=false "
    "--remove_extra_whitespaces=false";

TEST(SentencePiece, a_trained_tokenizer_round_trips_every_text) {
  const auto tokenizer = open_bytes(trained(kOurs));
  for (const std::string text : {"Tom has 42 apples.", " Tom", "  two  spaces ", "\n\n a\n", "a\tb",
                                 "\xE2\x82\xAC\xF0\x9F\x99\x82", "", "def f(x):\n    return x\n"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << text;
  }
  // Each digit is a token, and a newline is always a token of its own.
  EXPECT_EQ(tokenizer->encode("1234567", false).size(), 7u);
  const std::vector<TokenId> newline = tokenizer->encode("\n", false);
  ASSERT_EQ(newline.size(), 1u);
  EXPECT_THAT(tokenizer->encode("answer\nTom", false), testing::Contains(newline[0]));
}

// Compares with the library's decoder, on ids in any order, for each treatment of the first space.
TEST(SentencePiece, decode_equals_the_library_and_streaming) {
  const std::string models[] = {
      trained(kOurs), trained("--model_type=bpe"),
      trained("--model_type=unigram --hard_vocab_limit=false"),
      trained("--model_type=bpe --add_dummy_prefix=true --remove_extra_whitespaces=false")};
  for (const std::string& model : models) {
    const auto tokenizer = open_bytes(model);
    sentencepiece::SentencePieceProcessor library;
    ASSERT_TRUE(library.LoadFromSerializedProto(model).ok());
    std::mt19937 random(3);
    for (int round = 0; round < 500; round++) {
      std::vector<int> ids(1 + random() % 12);
      for (int& id : ids) {
        id = static_cast<int>(random() % static_cast<unsigned>(tokenizer->vocab_size()));
      }
      std::string expected;
      ASSERT_TRUE(library.Decode(ids, &expected).ok());
      EXPECT_EQ(tokenizer->decode(ids), expected) << testing::PrintToString(ids);

      TextStream stream(*tokenizer, {});
      std::string text;
      for (std::size_t i = 0; i < ids.size();) {
        const std::size_t n = std::min<std::size_t>(1 + random() % 3, ids.size() - i);
        text += stream.push(std::span(ids).subspan(i, n));
        EXPECT_TRUE(expected.starts_with(text)) << "emitted text is never retracted";
        i += n;
      }
      EXPECT_EQ(text + stream.finish(), expected) << testing::PrintToString(ids);
    }
  }
}

/// The byte token of `byte`; a trained model has them in sequence.
TokenId byte_token(const Tokenizer& tokenizer, char byte) {
  TokenId first = 0;
  while (tokenizer.piece(first) != std::string(1, '\0')) first++;
  return first + static_cast<unsigned char>(byte);
}

// Defines the text of a continuation on whole strings: decode(prompt + tokens) without the leading
// decode(prompt).
std::string text_after(const Tokenizer& tokenizer,
                       std::vector<TokenId> prompt,
                       const std::vector<TokenId>& tokens) {
  const std::string before = tokenizer.decode(prompt);
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), tokens.begin(), tokens.end());
  const std::string whole = tokenizer.decode(all);
  if (whole.starts_with(before)) return whole.substr(before.size());
  // The prompt ends inside a character that the tokens complete: the output starts after the last
  // whole character.
  std::size_t n = 0;
  while (n < before.size() && before[n] == whole[n]) n++;
  while (n > 0 && (static_cast<unsigned char>(whole[n]) & 0xc0) == 0x80) n--;
  return whole.substr(n);
}

TEST(TextStream, equals_decode_for_any_split_after_a_prompt) {
  const std::string models[] = {
      trained(kOurs), trained("--model_type=bpe"),
      trained("--model_type=unigram --hard_vocab_limit=false"),
      trained("--model_type=bpe --add_dummy_prefix=true --remove_extra_whitespaces=false")};
  // A two-byte, a three-byte and a four-byte character, whole and cut, among ordinary ids.
  const std::string open = "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x99\x82\xE2\x82\xC3";
  for (const std::string& model : models) {
    const auto tokenizer = open_bytes(model);
    std::mt19937 random(5);
    const auto draw = [&](std::size_t most) {
      std::vector<TokenId> ids(random() % (most + 1));
      const bool as_bytes = random() % 2 == 0;
      std::size_t at = random() % open.size();
      for (TokenId& id : ids) {
        const auto any = random() % static_cast<unsigned>(tokenizer->vocab_size());
        id =
            as_bytes ? byte_token(*tokenizer, open[at++ % open.size()]) : static_cast<TokenId>(any);
      }
      return ids;
    };
    for (int round = 0; round < 2000; round++) {
      const std::vector<TokenId> prompt = draw(6), ids = draw(9);
      const std::string expected = text_after(*tokenizer, prompt, ids);
      TextStream stream(*tokenizer, prompt);
      std::string text;
      for (std::size_t i = 0; i < ids.size();) {
        const std::size_t n = std::min<std::size_t>(random() % 4, ids.size() - i);
        const std::string more = stream.push(std::span(ids).subspan(i, n));
        std::string whole = more;
        EXPECT_EQ(take_whole_characters(whole, true), more) << "no partial character";
        text += more;
        i += n;
      }
      text += stream.finish();
      ASSERT_EQ(text, expected) << testing::PrintToString(prompt) << " then "
                                << testing::PrintToString(ids);
      ASSERT_EQ(continuation_text(*tokenizer, prompt, ids), expected);
    }
  }
}

TEST(TextStream, keeps_the_first_words_space_after_a_prompt) {
  const auto tokenizer =
      open_bytes(trained("--model_type=bpe --add_dummy_prefix=true "
                         "--remove_extra_whitespaces=false"));
  const std::vector<TokenId> prompt = tokenizer->encode("Tom has", false);
  const std::vector<TokenId> apples = tokenizer->encode("apples", false);
  EXPECT_EQ(tokenizer->decode(apples), "apples");
  EXPECT_EQ(continuation_text(*tokenizer, prompt, apples), " apples");
  EXPECT_EQ(continuation_text(*tokenizer, std::vector<TokenId>{1}, apples), "apples");
  EXPECT_EQ(continuation_text(*tokenizer, {}, apples), "apples");
}

TEST(TextStream, completes_a_character_begun_in_the_prompt) {
  const auto tokenizer = open_bytes(trained(kOurs));
  const auto bytes = [&](std::string_view text) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(byte_token(*tokenizer, c));
    return ids;
  };
  EXPECT_EQ(continuation_text(*tokenizer, bytes("\xE2\x82"), bytes("\xAC!")), "\xE2\x82\xAC!");
  EXPECT_EQ(continuation_text(*tokenizer, bytes("\xE2\x82"), bytes("!")), "!");
  EXPECT_EQ(continuation_text(*tokenizer, bytes("\xE2"), bytes("\x82")), "\xEF\xBF\xBD");
  EXPECT_EQ(continuation_text(*tokenizer, bytes("\xE2"), {}), "");
}

}  // namespace
}  // namespace engine::test

// Normalisation and splitting of a text before the merges.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/tokenizer/bpe/byte_symbols.h"
#include "engine/tokenizer/bpe/normalizer.h"
#include "engine/tokenizer/bpe/pre_tokenizer.h"
#include "engine/tokenizer/bpe/word_patterns.h"
#include "tests/support/refusal.h"
#include "tests/support/work_time.h"

namespace engine::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const SplitPattern::Origin kOrigin = {"file.json", "pattern"};

std::string pieces(const SplitPattern& pattern,
                   std::string_view text,
                   SplitBehaviour behaviour,
                   bool inverts = false) {
  std::vector<std::string_view> found;
  pattern.split(text, behaviour, inverts, found);
  return fmt::format("{}", fmt::join(found, "|"));
}

std::string isolated(std::string_view pattern, std::string_view text) {
  return pieces(SplitPattern::regex(pattern, kOrigin), text, SplitBehaviour::Isolated);
}

// The examples of the tokenizers library's documentation of SplitDelimiterBehavior.
TEST(SplitPattern, behaviours_are_those_of_tokenizers) {
  const SplitPattern dash = SplitPattern::literal("-", kOrigin);
  const char* const text = "the-final--countdown";
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::Removed), "the|final|countdown");
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::Isolated), "the|-|final|-|-|countdown");
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::MergedWithPrevious), "the-|final-|-|countdown");
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::MergedWithNext), "the|-final|-|-countdown");
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::Contiguous), "the|-|final|--|countdown");
  EXPECT_EQ(pieces(dash, text, SplitBehaviour::Removed, true), "-|-|-");
  EXPECT_EQ(pieces(dash, "", SplitBehaviour::Isolated), "");
}

TEST(SplitPattern, empty_matches_split_between_characters) {
  EXPECT_EQ(isolated("(?=(\\d{3})+(?!\\d))", "1234567"), "1|234|567");
  EXPECT_EQ(isolated("b*", "abbéc"), "a|bb|é|c");
}

TEST(SplitPattern, classes_are_those_of_unicode_16) {
  EXPECT_EQ(isolated("\\s", "a\u180Eb c"), "a\u180Eb| |c") << "U+180E is no white space";
  EXPECT_EQ(isolated("[^\\s]+", "a\u180Eb c"), "a\u180Eb| |c");
  EXPECT_EQ(isolated("\\S+", "a b"), "a| |b");
  EXPECT_EQ(isolated("\\p{L}+", "-\U00031350a\u1C89-"), "-|\U00031350a\u1C89|-");
  EXPECT_EQ(isolated("[^\\p{L}]+", "\U00031350-"), "\U00031350|-");
  EXPECT_EQ(isolated("\\P{L}+", "\U00031350-1"), "\U00031350|-1");
  EXPECT_EQ(isolated("\\pN", "a\U0001E4F0b"), "a|\U0001E4F0|b");
  EXPECT_EQ(isolated("\\d+", "a\U0001E4F01b"), "a|\U0001E4F01|b");
  EXPECT_EQ(isolated("\\p{Lu}+", "a\uA7CBB"), "a|\uA7CBB");
  EXPECT_EQ(isolated("[\\[\\]]", "a[b]"), "a|[|b|]");
  EXPECT_EQ(isolated("[]\\s]+", "a] b"), "a|] |b") << "a ']' that is the first member";
  EXPECT_EQ(isolated("[^]\\s]+", "a]b c"), "a|]|b| |c");
}

// Oniguruma and Rust's regex crate read these as sets; PCRE2 would read other characters.
TEST(SplitPattern, nested_classes_are_refused) {
  for (const char* const pattern :
       {"[a[b]c]", "[^(\\s|[.,])]+", "[[:alpha:]]", "[\\p{Lu}&&[^\\p{Han}]]", "[a&&b]"}) {
    EXPECT_THAT(refusal([&] { isolated(pattern, "a"); }),
                HasSubstr("expected one without a class in a class"));
  }
  EXPECT_EQ(isolated("\\[[&a]|&&", "[a&&&b"), "[a|&&|&b") << "outside a class";
}

// TJ07. Patterns come from files.
TEST(SplitPattern, hostile_patterns_end_with_a_message) {
  const auto refused = [](const std::string& pattern, const std::string& text = "a") {
    return refusal([&] { isolated(pattern, text); });
  };
  EXPECT_THAT(refused("a("), HasSubstr("file.json: pattern: found the pattern \"a(\", expected"));
  EXPECT_THAT(refused(std::string(1 << 20, 'a')), HasSubstr("a pattern of 1048576 bytes"));
  EXPECT_THAT(refused("(a{1000}){1000}{1000}"), HasSubstr("expected one that PCRE2 accepts"));
  EXPECT_THAT(refused(std::string(1000, '(') + std::string(1000, ')')), HasSubstr("PCRE2"));
  const std::string letters(40'000, 'a');
  EXPECT_THAT(refused("(a+)+$", letters + "b"),
              HasSubstr("a pattern that this text cannot be split by: match limit exceeded"));
  EXPECT_THAT(refused("(?:a|aa)+$", letters + "b"), HasSubstr("limit exceeded"));
  EXPECT_EQ(isolated("(?<=b)a", "aba"), "ab|a") << "looking behind is allowed";
}

// TX02. Each class of characters, and the published patterns: no text makes them slow.
TEST(WordPatterns, every_kind_takes_time_in_proportion) {
  const std::string marks = "e\u0301\u0327";
  for (const WordPatterns& kind : all_word_patterns()) {
    SCOPED_TRACE(kind.names[0]);
    PreTokenizer splits;
    add_patterns(kind, kOrigin, splits);
    for (const std::string& unit :
         {std::string("a"), std::string("A"), std::string(" "), std::string("\n"), std::string("1"),
          std::string("_"), std::string("\u3042"), std::string("aB"), marks}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      Words words;
      const double ms =
          ::test::worked_ms([&] { words = splits.apply(text, PreTokenizer::Place::Start); });
      EXPECT_LT(ms, 1000 * ::test::kSlower) << "for " << unit;
      std::size_t n_bytes = 0;
      for (const std::string_view word : words.words) n_bytes += word.size();
      EXPECT_EQ(n_bytes, text.size()) << "no part of the text is lost";
    }
  }
}

TEST(WordPatterns, names_are_unique) {
  for (const WordPatterns& kind : all_word_patterns())
    for (const std::string_view name : kind.names) EXPECT_EQ(word_patterns_named(name), &kind);
  EXPECT_EQ(word_patterns_named("unheard-of"), nullptr);
}

std::string words_of(const PreTokenizer& steps, std::string_view text, PreTokenizer::Place place) {
  return fmt::format("{}", fmt::join(steps.apply(text, place).words, "|"));
}

TEST(PreTokenizer, a_prefix_depends_on_the_place) {
  using Place = PreTokenizer::Place;
  PreTokenizer first;
  first.add(MetaspaceStep{.prepend = MetaspaceStep::Prepend::First});
  EXPECT_EQ(words_of(first, "a b", Place::Start), "▁a▁b");
  EXPECT_EQ(words_of(first, " a", Place::Start), "▁a");
  EXPECT_EQ(words_of(first, "▁a", Place::Start), "▁a");
  EXPECT_EQ(words_of(first, "a b", Place::AfterToken), "a▁b");
  EXPECT_EQ(words_of(first, "a b", Place::AfterText), "a▁b");
  PreTokenizer always;
  always.add(MetaspaceStep{});
  EXPECT_EQ(words_of(always, "a", Place::AfterToken), "▁a");
  EXPECT_EQ(words_of(always, "a", Place::AfterText), "a");
  PreTokenizer bytes;
  bytes.add(PrefixSpaceStep{});
  bytes.add(ByteLevelStep{});
  EXPECT_EQ(words_of(bytes, "a\n", Place::Start), "ĠaĊ");
  EXPECT_EQ(words_of(bytes, " a", Place::Start), "Ġa");
  EXPECT_EQ(words_of(bytes, "é", Place::AfterText), "Ã©");
  EXPECT_EQ(words_of(bytes, "", Place::Start), "");
}

TEST(ByteSymbols, every_byte_has_one) {
  std::string all;
  for (int byte = 0; byte < 256; byte++) all += static_cast<char>(byte);
  std::string symbols;
  append_byte_symbols(symbols, all);
  EXPECT_EQ(bytes_of_symbols(symbols), all);
  EXPECT_EQ(symbols.find('\0'), std::string::npos);
  EXPECT_EQ(bytes_of_symbols("a b"), std::nullopt) << "a space is written as U+0120";
  EXPECT_EQ(bytes_of_symbols("\u4E2D"), std::nullopt);
}

// Values of the normalisation tests of the Unicode standard (annex 15, table 2 and figures 3-6).
TEST(Normalizer, unicode_forms) {
  const auto form = [](const char* text, bool compose, bool compatible) {
    return in_unicode_form(text, UnicodeForm{compose, compatible});
  };
  EXPECT_EQ(form("A\u030A", true, false), "\u00C5");
  EXPECT_EQ(form("\u00C5", false, false), "A\u030A");
  EXPECT_EQ(form("\uFB01", true, false), "\uFB01");
  EXPECT_EQ(form("\uFB01", true, true), "fi");
  EXPECT_EQ(form("2\u2075", false, true), "25");
  EXPECT_EQ(form("\u1E9B\u0323", true, false), "\u1E9B\u0323");
  EXPECT_EQ(form("\u1E9B\u0323", false, false), "\u017F\u0323\u0307");
  EXPECT_EQ(form("\u1E9B\u0323", true, true), "\u1E69");
  EXPECT_EQ(form("\u1112\u1161\u11AB", true, false), "\uD55C");
  EXPECT_EQ(form("\uFDFA", true, true),
            "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064A\u0647 "
            "\u0648\u0633\u0644\u0645");
  EXPECT_EQ(form("plain", true, true), "plain");
}

// TX07. The canonical ordering of a million marks.
TEST(Normalizer, many_marks_take_time_in_proportion) {
  std::string text = "a";
  for (int i = 0; i < 250'000; i++) text += "\u0301\u0327";
  std::string composed;
  const double ms = ::test::worked_ms([&] { composed = in_unicode_form(text, UnicodeForm{}); });
  EXPECT_LT(ms, 2000 * ::test::kSlower);
  EXPECT_TRUE(composed.starts_with("\u00E1\u0327\u0327")) << "U+0327 is ordered before U+0301";
}

TEST(Normalizer, steps_apply_in_order) {
  Normalizer steps;
  steps.add(LowerCase{});
  steps.add(ReplaceMatches{SplitPattern::literal(" ", kOrigin), "▁"});
  steps.add(PrependText{"▁"});
  EXPECT_EQ(steps.apply("A \u0130", false), "▁a▁i\u0307");
  EXPECT_EQ(steps.apply("A", true), "a");
  EXPECT_EQ(steps.apply("", false), "");
  EXPECT_TRUE(Normalizer().empty());
}

}  // namespace
}  // namespace engine::test

// Byte-pair merging against a slow loop, and its rules for characters outside the vocabulary.
#include "engine/tokenizer/bpe/bpe_model.h"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/work_time.h"

namespace engine::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> encoded(const BpeModel& model, std::string_view word) {
  BpeModel::Workspace workspace;
  std::vector<TokenId> ids;
  model.encode(word, workspace, ids);
  return ids;
}

/// A random model of the letters a to d: each new token joins two that exist.
struct RandomModel {
  std::vector<std::string> texts = {"a", "b", "c", "d"};
  std::vector<std::pair<TokenId, TokenId>> merges;

  explicit RandomModel(unsigned seed, std::size_t n = 60) {
    std::mt19937 rng(seed);
    while (texts.size() < n) {
      const auto left = static_cast<TokenId>(rng() % texts.size());
      const auto right = static_cast<TokenId>(rng() % texts.size());
      const std::string text = texts[left] + texts[right];
      if (text.size() > 12 || std::ranges::find(texts, text) != texts.end()) continue;
      texts.push_back(text);
      merges.emplace_back(left, right);
    }
  }

  BpeModel by_pairs() const {
    BpeRules rules;
    rules.merges = MergeTable(merges.size());
    for (std::uint32_t i = 0; i < merges.size(); i++)
      rules.merges.add(merges[i].first, merges[i].second, {i, static_cast<TokenId>(i + 4)});
    return {BpeVocabulary(texts), std::move(rules)};
  }

  BpeModel by_texts() const {
    BpeRules rules;
    for (std::uint32_t i = 0; i < texts.size(); i++) rules.text_ranks.push_back(i);
    return {BpeVocabulary(texts), std::move(rules)};
  }

  /// The definition itself: finds the best pair of all, merges it, and begins again.
  std::vector<TokenId> slow(const std::string& word, bool texts_decide) const {
    std::vector<TokenId> ids;
    for (const char c : word) ids.push_back(c - 'a');
    for (;;) {
      std::size_t best = texts.size(), place = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); i++) {
        const std::string text = texts[ids[i]] + texts[ids[i + 1]];
        const auto merge = std::ranges::find(merges, std::pair(ids[i], ids[i + 1]));
        const std::size_t id = texts_decide ? std::ranges::find(texts, text) - texts.begin()
                               : merge == merges.end() ? texts.size()
                                                       : merge - merges.begin() + 4;
        if (id < best) best = id, place = i;
      }
      if (best == texts.size()) return ids;
      ids[place] = static_cast<TokenId>(best);
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
  }
};

TEST(BpeModel, equals_the_definition_on_random_words) {
  for (unsigned seed = 0; seed < 40; seed++) {
    const RandomModel random(seed);
    const BpeModel by_pairs = random.by_pairs(), by_texts = random.by_texts();
    std::mt19937 rng(seed + 1000);
    for (int i = 0; i < 50; i++) {
      std::string word;
      for (std::size_t n = rng() % 40; word.size() < n;) word += static_cast<char>('a' + rng() % 4);
      EXPECT_EQ(encoded(by_pairs, word), random.slow(word, false)) << word;
      EXPECT_EQ(encoded(by_texts, word), random.slow(word, true)) << word;
    }
  }
}

TEST(BpeModel, a_long_word_takes_time_in_proportion) {
  const RandomModel random(1);
  const BpeModel by_pairs = random.by_pairs(), by_texts = random.by_texts();
  std::mt19937 rng(5);
  std::string word;
  while (word.size() < 1'000'000) word += static_cast<char>('a' + rng() % 4);
  for (const BpeModel* const model : {&by_pairs, &by_texts}) {
    std::vector<TokenId> ids;
    const double ms = ::test::worked_ms([&] { ids = encoded(*model, word); });
    EXPECT_LT(ms, 4000 * ::test::kSlower) << "a quadratic loop takes hours";
    EXPECT_LT(ids.size(), word.size());
  }
}

BpeModel with_rules(std::vector<std::string> texts, BpeRules rules) {
  return {BpeVocabulary(std::move(texts)), std::move(rules)};
}

TEST(BpeModel, unknown_characters_are_dropped_replaced_or_fused) {
  const std::vector<std::string> texts = {"<unk>", "a", "b"};
  EXPECT_THAT(encoded(with_rules(texts, {}), "axyb"), ElementsAre(1, 2));
  BpeRules replace;
  replace.unknown = 0;
  EXPECT_THAT(encoded(with_rules(texts, replace), "axyb"), ElementsAre(1, 0, 0, 2));
  replace.fuse_unknown = true;
  EXPECT_THAT(encoded(with_rules(texts, replace), "axyb"), ElementsAre(1, 0, 2));
  EXPECT_THAT(encoded(with_rules(texts, replace), "xaxyé"), ElementsAre(0, 1, 0));
  EXPECT_THAT(encoded(with_rules(texts, replace), ""), IsEmpty());
}

TEST(BpeModel, byte_fallback_needs_all_bytes_of_a_character) {
  BpeRules rules;
  rules.unknown = 0;
  rules.byte_fallback = true;
  // U+00E9 is C3 A9; U+00E8 is C3 A8, which has no token
  const std::vector<std::string> texts = {"<unk>", "a", "<0xC3>", "<0xA9>"};
  EXPECT_THAT(encoded(with_rules(texts, rules), "a\u00E9"), ElementsAre(1, 2, 3));
  EXPECT_THAT(encoded(with_rules(texts, rules), "a\u00E8"), ElementsAre(1, 0));
  rules.text_ranks = {BpeRules::kNoRank, 0, BpeRules::kNoRank, BpeRules::kNoRank};
  EXPECT_THAT(encoded(with_rules(texts, rules), "a\u00E9\u00E8"), ElementsAre(1, 2, 3, 0));
}

TEST(BpeModel, a_text_rank_joins_characters_that_are_no_tokens) {
  BpeRules rules;
  rules.unknown = 0;
  rules.text_ranks = {BpeRules::kNoRank, 2, 1};
  EXPECT_THAT(encoded(with_rules({"<unk>", "ab", "bc"}, rules), "abc"), ElementsAre(0, 2))
      << "the lower rank first";
}

TEST(BpeModel, ignore_merges_takes_whole_words) {
  BpeRules rules;
  const std::vector<std::string> texts = {"a", "b", "ab", "abba"};
  EXPECT_THAT(encoded(with_rules(texts, rules), "ab"), ElementsAre(0, 1));
  rules.ignore_merges = true;
  EXPECT_THAT(encoded(with_rules(texts, rules), "ab"), ElementsAre(2));
  EXPECT_THAT(encoded(with_rules(texts, rules), "abba"), ElementsAre(3));
  EXPECT_THAT(encoded(with_rules(texts, rules), "abb"), ElementsAre(0, 1, 1));
}

TEST(MergeTable, keeps_the_first_rank_of_a_pair) {
  MergeTable table(3);
  table.add(1, 2, {.rank = 0, .id = 3});
  table.add(1, 2, {.rank = 1, .id = 4});
  table.add(2, 1, {.rank = 2, .id = 5});
  EXPECT_EQ(table.find(1, 2).id, 3);
  EXPECT_EQ(table.find(2, 1).id, 5);
  EXPECT_EQ(table.find(1, 1).id, -1);
  EXPECT_EQ(table.find(-1, 2).id, -1);
  EXPECT_EQ(MergeTable().find(1, 2).id, -1);
}

}  // namespace
}  // namespace engine::test

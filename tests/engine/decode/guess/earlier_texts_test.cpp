#include "engine/decode/guess/earlier_texts.h"

#include <gtest/gtest.h>

#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

using Text = std::vector<TokenId>;

/// The last place of the longest suffix of `text` in the texts of runs.
GuessSource source_of(const EarlierTexts& texts, const Text& text) {
  return texts.source_in_runs(texts.runs().newest(texts.runs().longest_suffix(text).state));
}

TEST(EarlierTexts, a_token_is_found_in_its_run) {
  EarlierTexts texts;
  texts.add(4, Text{1, 2, 3, 4, 5}, 2, 100);
  texts.add(9, Text{7, 3, 4, 8}, 1, 100);
  EXPECT_EQ(texts.n_texts(), 2);
  const GuessSource newest = source_of(texts, {3, 4});
  EXPECT_EQ(newest.kind, GuessSource::Kind::Earlier);
  EXPECT_EQ(newest.run, 9U);
  EXPECT_EQ(newest.pos, 2);
  const GuessSource old = source_of(texts, {4, 5});
  EXPECT_EQ(old.run, 4U);
  EXPECT_EQ(old.pos, 4);
  EXPECT_EQ(texts.runs().count(texts.runs().longest_suffix(Text{3, 4}).state), 2);
}

TEST(EarlierTexts, the_end_of_a_prompt_leads_to_its_answer) {
  EarlierTexts texts;
  Text sequence;
  for (TokenId token = 0; token < 30; token++) sequence.push_back(token);
  texts.add(1, sequence, 20, 100);
  EXPECT_EQ(texts.runs().n_tokens(), 18);  // eight of the prompt
  EXPECT_EQ(texts.runs().longest_suffix(Text{10, 11, 12, 13}).length, 2);
  EXPECT_EQ(source_of(texts, {19, 20}).pos, 20);
}

TEST(EarlierTexts, a_run_without_tokens_is_not_kept) {
  EarlierTexts texts;
  texts.add(1, Text{1, 2, 3}, 3, 100);
  EXPECT_EQ(texts.n_texts(), 0);
  EXPECT_EQ(texts.runs().n_tokens(), 0);
}

TEST(EarlierTexts, the_oldest_texts_are_dropped) {
  Dice dice(2);
  EarlierTexts texts;
  std::vector<Text> all;
  for (RunId run = 0; run < 40; run++) {
    all.push_back(dice.text(dice(1, 12), 1000));
    texts.add(run, all.back(), 0, 64);
    ASSERT_LE(texts.runs().n_tokens(), 64);
    // The texts that are left are the newest ones, and their tokens are found.
    const auto n = static_cast<std::size_t>(texts.n_texts());
    for (std::size_t i = all.size() - n; i < all.size(); i++) {
      ASSERT_EQ(texts.runs().longest_suffix(all[i]).length, static_cast<int>(all[i].size()));
      const GuessSource source = source_of(texts, all[i]);
      ASSERT_EQ(source.run, i);
      ASSERT_EQ(source.pos, static_cast<int>(all[i].size()) - 1);
    }
  }
  EXPECT_GT(texts.n_texts(), 3);
  EXPECT_LT(texts.runs().longest_suffix(all.front()).length, static_cast<int>(all.front().size()));
}

TEST(EarlierTexts, a_text_larger_than_the_limit_is_dropped) {
  EarlierTexts texts;
  texts.add(1, Text(50, 3), 0, 20);
  EXPECT_EQ(texts.n_texts(), 0);
  EXPECT_EQ(texts.runs().n_tokens(), 0);
  texts.add(2, Text{1, 2}, 0, 20);
  EXPECT_EQ(source_of(texts, {1, 2}).run, 2U);
}

TEST(EarlierTexts, a_file_stays) {
  Text tokens;
  for (int i = 0; i < 10'000; i++) tokens.push_back(i % 5000);
  EarlierTexts texts(std::make_shared<PoolFile>("a.txt", tokens));
  for (RunId run = 1; run < 9; run++) texts.add(run, Text(10, 3), 0, 20);
  const SuffixAutomaton& index = texts.file()->index;
  EXPECT_EQ(index.n_tokens(), 10'000);
  const auto match = index.longest_suffix(Text{70, 71, 72});
  EXPECT_EQ(match.length, 3);
  EXPECT_EQ(index.count(match.state), 2);
  EXPECT_EQ(index.newest(match.state), 5072);
  EXPECT_EQ(EarlierTexts().file(), nullptr);
}

}  // namespace
}  // namespace engine::test

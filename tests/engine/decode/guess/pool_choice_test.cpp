#include "engine/decode/guess/pool_choice.h"

#include <gtest/gtest.h>

#include "tests/support/decode/chosen_sizes.h"

namespace engine::test {
namespace {

PoolNgram ngram(std::vector<TokenId> rest, std::uint32_t n_hits = 0, std::uint32_t n_tries = 0) {
  return {.first = 1, .rest = std::move(rest), .n_hits = n_hits, .n_tries = n_tries};
}

TEST(PoolKnowledge, orders_the_tree_by_probability) {
  PoolKnowledge known;
  const std::vector<PoolNgram> kept{ngram({5, 6, 7}), ngram({5, 8, 9}), ngram({4, 3, 2}, 2, 3)};
  std::vector<FoundNgram> found;
  for (const PoolNgram& one : kept) found.push_back({&one, false});
  const std::vector<PoolNode> nodes = known.nodes(found, 2);
  ASSERT_EQ(nodes.size(), 5U) << "5, 4 and their children; 5 is shared";
  for (std::size_t i = 0; i < nodes.size(); i++) {
    EXPECT_LT(nodes[i].parent, static_cast<int>(i));
    const double parent =
        nodes[i].parent < 0 ? 1 : nodes[static_cast<std::size_t>(nodes[i].parent)].right;
    EXPECT_LT(nodes[i].right, parent);
    EXPECT_LE(nodes[i].right, i > 0 ? nodes[i - 1].right : 1);
  }
  EXPECT_EQ(nodes[0].token, 4) << "the most recent one, which was right before";
}

// Three n-grams with one first token are copies of one place more often than three witnesses.
TEST(PoolKnowledge, ngrams_that_agree_are_not_independent) {
  PoolKnowledge known;
  const std::vector<PoolNgram> kept{ngram({5, 6, 7}), ngram({5, 6, 8}), ngram({5, 6, 9})};
  std::vector<FoundNgram> found;
  for (const PoolNgram& one : kept) found.push_back({&one, false});
  Dice dice(15);
  for (int i = 0; i < 300; i++) {
    const bool first = dice(0, 9) < 4, second = dice(0, 9) < 5;
    known.learn(found, first ? std::vector<TokenId>{5, second ? 6 : 1} : std::vector<TokenId>{2});
    known.came(0, 1, 1);
  }
  const std::vector<PoolNode> nodes = known.nodes(found, 2);
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_NEAR(nodes[0].right, 0.4, 0.12);
  EXPECT_GT(nodes[0].alone, 0.6) << "uncorrected";
  EXPECT_NEAR(nodes[1].right, 0.2, 0.1);
}

TEST(PoolKnowledge, learns_from_guesses_that_were_not_verified) {
  PoolKnowledge known;
  const PoolNgram good = ngram({5, 6, 7}), bad = ngram({8, 9, 9});
  const std::vector<FoundNgram> found{{&bad, true}, {&good, false}};
  const auto right_of = [&](TokenId token) {
    for (const PoolNode& node : known.nodes(found, 1))
      if (node.token == token) return node.right;
    return -1.0;
  };
  const double before = right_of(5), before_bad = right_of(8);
  for (int i = 0; i < 50; i++) known.learn(found, std::vector<TokenId>{5});
  EXPECT_GT(right_of(5), 0.9);
  EXPECT_GT(right_of(5), before);
  EXPECT_LT(right_of(8), before_bad);
}

TEST(PoolKnowledge, columns_follow_their_worth_and_cost) {
  PoolKnowledge known;
  StepControl flat = free_rows(32), steep = free_rows(2);
  EXPECT_EQ(known.choose_columns(4, 2, 3, flat), 4) << "rows are free";
  EXPECT_EQ(known.choose_columns(4, 2, 3, steep), 0);
  // The window's n-grams yield a token in every second step.
  StepControl cheap(CostModel([](int rows) { return 10 + 0.6 * rows; }));
  EXPECT_EQ(known.choose_columns(4, 2, 3, cheap), 0);
  const PoolNgram one = ngram({5, 6});
  for (int i = 0; i < 300; i++) {
    known.learn(std::vector<FoundNgram>{{&one, true}},
                i % 2 ? std::vector<TokenId>{5, 9} : std::vector<TokenId>{4});
    known.came(3, 1 + i % 2, 1);
  }
  EXPECT_GT(known.tokens_per_window_row(), 0.1);
  EXPECT_GT(known.choose_columns(4, 2, 3, cheap), 0);
}

}  // namespace
}  // namespace engine::test

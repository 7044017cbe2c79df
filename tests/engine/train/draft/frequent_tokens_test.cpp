#include "engine/train/run/frequent_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"

namespace engine {
namespace {

OwnOutput text(std::vector<TokenId> tokens, int n_prompt, bool ended) {
  OwnOutput output;
  output.tokens = std::move(tokens);
  output.n_prompt = n_prompt;
  output.ended = ended;
  return output;
}

TEST(FrequentTokens, counts_answers_only_and_keeps_end_tokens) {
  const std::vector<OwnOutput> texts = {text({9, 9, 9, 4, 4, 7, 2}, 3, true),
                                        text({9, 5, 7, 6, 6, 4}, 1, false)};
  // Counts: 4: 3, 6: 2, 7: 2, 5: 1, 2: 1, which ends a text.
  EXPECT_THAT(frequent_tokens(texts, 10, 1), testing::ElementsAre(2));
  EXPECT_THAT(frequent_tokens(texts, 10, 3), testing::ElementsAre(2, 4, 6));
  EXPECT_THAT(frequent_tokens(texts, 10, 4), testing::ElementsAre(2, 4, 6, 7));
  EXPECT_THAT(frequent_tokens(texts, 10, 7), testing::ElementsAre(0, 1, 2, 4, 5, 6, 7));
}

TEST(FrequentTokens, refuses_counts_and_tokens_out_of_range) {
  const std::vector<OwnOutput> texts = {text({1, 5}, 1, true), text({1, 6}, 1, true)};
  EXPECT_THROW(frequent_tokens(texts, 10, 0), kernels::ContractError);
  EXPECT_THROW(frequent_tokens(texts, 10, 11), kernels::ContractError);
  EXPECT_THROW(frequent_tokens(texts, 10, 1), kernels::Error);
  EXPECT_THROW(frequent_tokens(texts, 6, 2), kernels::Error);
}

}  // namespace
}  // namespace engine

#include <vector>

#include <gtest/gtest.h>

#include "engine/run/agreement.h"

namespace engine {
namespace {

const std::vector<TokenId> kLong{4, 8, 15, 16};
const std::vector<TokenId> kShort{4, 8};

TEST(Agreement, equal_runs_have_no_difference) {
  const Agreement agreement = agreement_of({kLong}, {kLong});
  EXPECT_EQ(agreement.first_difference, -1);
  EXPECT_EQ(agreement.n_compared, 4);
}

TEST(Agreement, a_difference_names_both_tokens) {
  const std::vector<TokenId> other{4, 8, 23, 16};
  const Agreement agreement = agreement_of({other}, {kLong});
  EXPECT_EQ(agreement.first_difference, 2);
  EXPECT_EQ(agreement.found, 23);
  EXPECT_EQ(agreement.expected, 15);
}

TEST(Agreement, a_difference_has_both_margins) {
  RunResult found{.tokens = {4, 8, 23}, .margins = {1, 2, 0.5f}, .stop_reason = "eos"};
  RunResult ar{.tokens = {4, 8, 15, 16}, .margins = {1, 2, 0.25f, 4}, .stop_reason = "eos"};
  EXPECT_EQ(agree(found, ar).first_difference, 2);
  EXPECT_EQ(found.identical_to_ar, false);
  ASSERT_TRUE(found.difference);
  EXPECT_EQ(found.difference->at, 2);
  EXPECT_EQ(found.difference->margin, 0.5f);
  EXPECT_EQ(found.difference->margin_of_ar, 0.25f);
  RunResult ended{.tokens = {4, 8}, .margins = {1, 2}, .stop_reason = "eos"};
  agree(ended, ar);
  ASSERT_TRUE(ended.difference);
  EXPECT_EQ(ended.difference->margin, std::nullopt);
  EXPECT_EQ(ended.difference->margin_of_ar, 0.25f);
  RunResult same = ar;
  agree(same, ar);
  EXPECT_EQ(same.identical_to_ar, true);
  EXPECT_FALSE(same.difference);
}

TEST(Agreement, an_early_end_is_a_difference_at_that_position) {
  const Agreement agreement = agreement_of({kShort}, {kLong});
  EXPECT_EQ(agreement.first_difference, 2);
  EXPECT_EQ(agreement.found, -1);
  EXPECT_EQ(agreement.expected, 15);
}

TEST(Agreement, a_stopped_run_is_compared_up_to_its_end) {
  const Agreement stopped = agreement_of({kShort, false}, {kLong});
  EXPECT_EQ(stopped.first_difference, -1);
  EXPECT_EQ(stopped.n_compared, 2);
  EXPECT_EQ(agreement_of({kLong}, {kShort, false}).first_difference, -1);
  EXPECT_EQ(agreement_of({kLong, false}, {kShort, false}).first_difference, -1);
}

TEST(Agreement, a_stopped_run_longer_than_plain_decoding_differs) {
  const Agreement agreement = agreement_of({kLong, false}, {kShort});
  EXPECT_EQ(agreement.first_difference, 2);
  EXPECT_EQ(agreement.found, 15);
  EXPECT_EQ(agreement.expected, -1);
}

TEST(Agreement, sampling_with_rejection_is_not_compared) {
  Sampling sampling;
  sampling.mode = Sampling::Mode::Rejection;
  sampling.temperature = 1;
  EXPECT_FALSE(comparable(sampling));
  sampling.temperature = 0;
  EXPECT_TRUE(comparable(sampling));
  sampling.temperature = 1;
  sampling.mode = Sampling::Mode::Coupled;
  EXPECT_TRUE(comparable(sampling));
}

}  // namespace
}  // namespace engine

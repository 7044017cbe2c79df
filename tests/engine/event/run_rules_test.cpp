#include "engine/event/run_rules.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/base/text.h"

namespace engine {
namespace {

TEST(Counted, one_has_no_s_and_a_noun_may_have_another_plural) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(2, "step"), "2 steps");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(3, "process", "processes"), "3 processes");
}

TEST(RunRules, numbers_judge_only_under_rejection_sampling_and_where_any_are_drawn) {
  EXPECT_TRUE(rejects(kRejection, 1));
  EXPECT_FALSE(rejects(kRejection, 0));
  EXPECT_FALSE(rejects(kCoupled, 1));
  EXPECT_FALSE(rejects("", 1)) << "of a recording that does not say";
}

TEST(RunRules, the_distribution_is_lost_where_certain_drafts_are_judged_as_if_they_had_been_drawn) {
  const auto released = [](const char* draft_temperature) {
    return std::map<std::string, std::string>{{"as_released", "true"},
                                              {"draft_temperature", draft_temperature}};
  };
  EXPECT_FALSE(keeps_distribution(released("0"), true, 1));
  EXPECT_TRUE(keeps_distribution(released("0"), false, 1)) << "tokens are compared";
  EXPECT_TRUE(keeps_distribution(released("0.5"), true, 1)) << "the draft draws";
  EXPECT_TRUE(keeps_distribution(released("-1"), true, 1)) << "at the target's temperature";
  EXPECT_TRUE(keeps_distribution({{"as_released", "true"}}, true, 1)) << "the same";
  EXPECT_TRUE(keeps_distribution({{"as_released", "false"}, {"draft_temperature", "0"}}, true, 1));
  EXPECT_TRUE(keeps_distribution({}, true, 1));
}

TEST(RunRules, certain_drafts_lose_no_distribution_one_at_a_time_nor_where_the_target_draws) {
  const auto with = [](const char* option, const char* value) {
    return std::map<std::string, std::string>{
        {"as_released", "true"}, {"draft_temperature", "0"}, {option, value}};
  };
  for (const char* chain : {"1", "1,1", "1,1,1,1"})
    EXPECT_TRUE(keeps_distribution(with("k_config", chain), true, 1)) << chain;
  for (const char* tree : {"2", "2,1,1", "1,1,2", "11", "1,11", "1,10,1"})
    EXPECT_FALSE(keeps_distribution(with("k_config", tree), true, 1)) << tree;
  EXPECT_TRUE(keeps_distribution(with("rule", "naive"), true, 1));
  for (const char* rule : {"without", "with", "kseq"})
    EXPECT_FALSE(keeps_distribution(with("rule", rule), true, 1)) << rule;
}

}  // namespace
}  // namespace engine

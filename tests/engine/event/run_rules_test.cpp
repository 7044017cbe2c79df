#include "engine/event/run_rules.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/base/text.h"

namespace engine {
namespace {

TEST(Counted, counts_are_singular_or_plural) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(2, "step"), "2 steps");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(3, "process", "processes"), "3 processes");
}

TEST(RunRules, only_sampling_with_rejection_draws_uniforms) {
  EXPECT_TRUE(rejects(kRejection, 1));
  EXPECT_FALSE(rejects(kRejection, 0));
  EXPECT_FALSE(rejects(kCoupled, 1));
  EXPECT_FALSE(rejects("", 1)) << "old recordings do not store the sampling mode";
}

TEST(RunRules, as_released_argmax_drafts_change_the_distribution) {
  const auto released = [](const char* draft_temperature) {
    return std::map<std::string, std::string>{{"as_released", "true"},
                                              {"draft_temperature", draft_temperature}};
  };
  EXPECT_FALSE(keeps_distribution(released("0"), true, 1));
  EXPECT_TRUE(keeps_distribution(released("0"), false, 1)) << "tokens are compared";
  EXPECT_TRUE(keeps_distribution(released("0.5"), true, 1)) << "the draft samples";
  EXPECT_TRUE(keeps_distribution(released("-1"), true, 1)) << "at the target's temperature";
  EXPECT_TRUE(keeps_distribution({{"as_released", "true"}}, true, 1))
      << "the default is the target's temperature";
  EXPECT_TRUE(keeps_distribution({{"as_released", "false"}, {"draft_temperature", "0"}}, true, 1));
  EXPECT_TRUE(keeps_distribution({}, true, 1));
}

TEST(RunRules, single_argmax_drafts_keep_the_distribution) {
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

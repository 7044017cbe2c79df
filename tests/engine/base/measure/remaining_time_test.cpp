// The estimate of the remaining time.
#include "engine/base/measure/remaining_time.h"

#include <gtest/gtest.h>

namespace engine {
namespace {

TEST(RemainingTime, follows_the_speed_of_the_timed_parts) {
  EXPECT_DOUBLE_EQ(remaining_seconds(4, 10, 4, 8), 12);
  EXPECT_DOUBLE_EQ(remaining_seconds(4, 10, 1, 8), 48) << "three parts were done before";
  EXPECT_DOUBLE_EQ(remaining_seconds(10, 10, 4, 8), 0);
}

TEST(RemainingTime, is_never_negative) {
  EXPECT_EQ(remaining_seconds(3016, 3000, 16, 2), 0);
  EXPECT_EQ(remaining_seconds(12, 10, 0, 8), 0);
}

TEST(RemainingTime, is_zero_while_the_speed_is_unknown) {
  EXPECT_EQ(remaining_seconds(4, 10, 0, 8), 0);
  EXPECT_EQ(remaining_seconds(4, 10, 4, 0), 0);
}

}  // namespace
}  // namespace engine

// Figures in the words of reports.
#include "app/commands/report.h"

#include <cmath>

#include <gtest/gtest.h>

namespace {

TEST(Report, durations_have_minutes_and_seconds) {
  EXPECT_EQ(app::minutes_and_seconds(0), "0:00");
  EXPECT_EQ(app::minutes_and_seconds(59.9), "0:59");
  EXPECT_EQ(app::minutes_and_seconds(725), "12:05");
  EXPECT_EQ(app::minutes_and_seconds(3e9), "50000000:00");
}

TEST(Report, no_duration_is_negative) {
  EXPECT_EQ(app::minutes_and_seconds(-2), "0:00");
  EXPECT_EQ(app::minutes_and_seconds(std::nan("")), "0:00");
}

}  // namespace

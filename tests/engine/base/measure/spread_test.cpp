// Quartiles of repeated measurements, with values computed by hand.
#include <gtest/gtest.h>

#include "engine/base/measure/spread.h"

namespace engine {
namespace {

void expect_spread(const std::vector<double>& values, double q1, double median, double q3) {
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.n, static_cast<int>(values.size()));
  EXPECT_DOUBLE_EQ(spread.q1, q1);
  EXPECT_DOUBLE_EQ(spread.median, median);
  EXPECT_DOUBLE_EQ(spread.q3, q3);
}

TEST(Spread, quartiles_are_interpolated) {
  expect_spread({4, 1, 3, 2}, 1.75, 2.5, 3.25);
  expect_spread({10, 20, 30, 40, 50}, 20, 30, 40);
  expect_spread({5, 3}, 3.5, 4, 4.5);
  expect_spread({7}, 7, 7, 7);
}

TEST(Spread, no_values_give_no_spread) {
  EXPECT_EQ(spread_of({}).n, 0);
}

}  // namespace
}  // namespace engine

#include "engine/store/calibration.h"
#include "engine/store/thread_choice.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

/// A model whose forwards move a clock by the time of their rows.
class TimedModel final : public ToyModel {
 public:
  TimedModel(double first_row, double further_row)
      : ToyModel({.vocab = 9, .context = 2}), first_row_(first_row), further_row_(further_row) {}

  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    const int n_now = items[0].tree->n_rows();
    longest_ = std::max(longest_, n_now);
    now_ += first_row_ + further_row_ * (n_now - 1);
    return ToyModel::forward(items, wants);
  }
  double now() const { return now_; }
  int longest() const { return longest_; }

 private:
  double first_row_, further_row_;
  double now_ = 0;
  int longest_ = 0;
};

TEST(Calibration, measures_all_row_counts_of_a_fast_model) {
  TimedModel model(1, 0.1);
  const auto times = measure_steps(model, 200, [&] { return model.now(); });
  std::set<int> rows;
  for (const StepTime& time : times) {
    rows.insert(time.n_rows);
    EXPECT_NEAR(time.ms, 1 + 0.1 * (time.n_rows - 1), 1e-9);
  }
  EXPECT_EQ(rows, (std::set<int>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32}));
  EXPECT_EQ(times.size(), 30U) << "three times each";
}

TEST(Calibration, never_takes_longer_than_allowed) {
  for (const double first_row : {3.0, 16.0, 60.0, 150.0, 500.0}) {
    for (const double further_row : {0.0, 0.1, 1.0}) {
      TimedModel model(first_row, further_row * first_row);
      const auto times = measure_steps(model, 200, [&] { return model.now(); });
      EXPECT_LE(model.now(), std::max(200.0, first_row) + 1e-9) << first_row << " " << further_row;
      if (first_row > 100) {
        EXPECT_TRUE(times.empty());
      }
      if (first_row < 20) {
        EXPECT_GE(model.longest(), 4);
      }
    }
  }
}

TEST(Calibration, takes_the_fewest_of_the_fast_threads) {
  EXPECT_EQ(fewest_fast_threads(std::vector<StepTime>{{4, 2}}), 4);
  EXPECT_EQ(fewest_fast_threads(std::vector<StepTime>{{8, 2.2}, {4, 2}, {8, 2.1}, {4, 3}}), 4);
  EXPECT_EQ(fewest_fast_threads(std::vector<StepTime>{{16, 1}, {8, 1.02}, {4, 1.1}}), 8)
      << "within 3 %";
  EXPECT_EQ(fewest_fast_threads(std::vector<StepTime>{{16, 1.5}, {16, 1}, {8, 1.2}}), 16)
      << "the shortest time of each counts";
}

TEST(Calibration, has_a_folder_in_the_users_cache) {
  EXPECT_TRUE(calibration_folder().empty() || calibration_folder().ends_with("/decoscope/steps"));
}

}  // namespace
}  // namespace engine::test

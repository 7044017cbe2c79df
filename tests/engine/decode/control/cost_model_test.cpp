#include "engine/decode/control/cost_model.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/data/random.h"

namespace engine {
namespace {

using Curve = std::function<double(int)>;

double flat(int) {
  return 7;
}
double linear(int rows) {
  return 10 + 0.5 * rows;
}
double steep(int rows) {
  return 2.0 * rows;
}
/// Kernels that compute four rows at a time.
double in_blocks(int rows) {
  return 8 + 3.0 * ((rows + 3) / 4);
}

/// Adds a step whose time is noisy: up to 4 % more, and twice the time in a share of `spikes`.
void add(CostModel& model, const Curve& curve, int rows, Random& rng, double spikes = 0) {
  const double noise = 0.04 * rng.bits() * 0x1p-32;
  const bool spike = rng.bits() * 0x1p-32 < spikes;
  model.add(rows, curve(rows) * (1 + noise) * (spike ? 2 : 1));
}

/// As the calibration of a load.
void calibrate(CostModel& model, const Curve& curve, Random& rng) {
  for (const int rows : {1, 2, 4, 8, 16, 3, 6, 12, 24, 32}) add(model, curve, rows, rng);
}

TEST(CostModel, a_calibration_gives_the_ratios_of_all_row_counts) {
  for (const Curve& curve : {Curve(flat), Curve(linear), Curve(steep)}) {
    CostModel model;
    Random rng(1);
    calibrate(model, curve, rng);
    for (int rows = 1; rows <= 32; rows++)
      EXPECT_NEAR(model.ms(rows) / model.ms(1), curve(rows) / curve(1),
                  0.1 * curve(rows) / curve(1))
          << rows;
  }
}

TEST(CostModel, never_decreases_with_rows) {
  for (std::uint64_t seed = 1; seed <= 20; seed++) {
    CostModel model;
    Random rng(seed);
    for (int i = 0; i < 200; i++) {
      add(model, in_blocks, 1 + static_cast<int>(rng.bits() % 40), rng, 0.1);
      for (int rows = 1; rows < 300; rows++) ASSERT_LE(model.ms(rows), model.ms(rows + 1) + 1e-12);
    }
  }
}

TEST(CostModel, rare_slow_steps_change_little) {
  CostModel model;
  Random rng(2);
  calibrate(model, linear, rng);
  for (int i = 0; i < 300; i++) add(model, linear, i % 2 ? 1 : 8, rng, 0.1);
  EXPECT_NEAR(model.ms(8) / model.ms(1), linear(8) / linear(1), 0.06);
  EXPECT_NEAR(model.ms(1), linear(1), 0.12 * linear(1));
}

// The load of the machine doubles all times; then only rows become dearer.
TEST(CostModel, follows_changes_of_level_and_shape) {
  CostModel model;
  Random rng(3);
  calibrate(model, linear, rng);
  const Curve slower = [](int rows) { return 2 * linear(rows); };
  for (int i = 0; i < 40; i++) add(model, slower, i % 4 == 0 ? 1 : 5, rng);
  EXPECT_NEAR(model.ms(5), slower(5), 0.1 * slower(5));
  EXPECT_NEAR(model.ms(12) / model.ms(1), linear(12) / linear(1), 0.2) << "not measured again";
  const Curve dearer = [](int rows) { return 20 + 4.0 * (rows - 1); };
  for (int i = 0; i < 150; i++) add(model, dearer, i % 4 == 0 ? 1 : 5, rng);
  EXPECT_NEAR(model.ms(5) / model.ms(1), dearer(5) / dearer(1), 0.12);
}

TEST(CostModel, learns_without_a_calibration) {
  CostModel model;
  Random rng(4);
  for (int i = 0; i < 60; i++) add(model, steep, 1 + i % 6, rng);
  for (int rows = 1; rows <= 6; rows++)
    EXPECT_NEAR(model.ms(rows), steep(rows), 0.15 * steep(rows));
  EXPECT_GT(model.ms(16), 2 * model.ms(4)) << "beyond the measured rows";
}

/// Attention makes a step dearer with the context, and each row too.
double with_context(const StepWork& work) {
  return linear(work.n_rows) + 0.001 * work.positions + 0.0012 * work.row_positions;
}

TEST(CostModel, learns_what_the_context_costs) {
  for (const double prior : {3e-5, 1e-4, 3e-4}) {
    CostModel model;
    model.set_position_share(prior);
    Random rng(5);
    calibrate(model, linear, rng);
    for (int i = 0; i < 120; i++) {
      const StepWork work = step_work(i % 6 == 0 ? 1 : 3 + i % 4, 3000 + 10 * i);
      model.add(work, with_context(work) * (1 + 0.04 * rng.bits() * 0x1p-32));
    }
    for (const int rows : {1, 3, 6}) {
      const StepWork work = step_work(rows, 4200);
      EXPECT_NEAR(model.ms(work), with_context(work), 0.1 * with_context(work)) << rows;
    }
    for (const int rows : {2, 4, 6, 8, 12}) {
      for (const int n_positions : {0, 100, 1000, 4000}) {
        const StepWork work = step_work(rows, n_positions), plain = step_work(1, n_positions);
        const double ratio = with_context(work) / with_context(plain);
        EXPECT_NEAR(model.ms(work) / model.ms(plain), ratio, 0.15 * ratio)
            << rows << " rows, " << n_positions << " positions, prior " << prior;
      }
    }
  }
}

// A run with a long context must not make the next short one plain.
TEST(CostModel, a_long_context_does_not_change_the_times_of_short_ones) {
  CostModel model;
  Random rng(6);
  calibrate(model, linear, rng);
  const double before = model.ms(8) / model.ms(1);
  for (int i = 0; i < 300; i++) {
    const StepWork work = step_work(i % 8 ? 2 : 1, 8000);
    model.add(work, with_context(work));
  }
  EXPECT_NEAR(model.ms(8) / model.ms(1), before, 0.1);
  EXPECT_GT(model.ms(step_work(8, 8000)) / model.ms(step_work(1, 8000)), 2.5);
}

TEST(CostModel, sequences_in_a_forward_add_their_positions) {
  const StepWork work = step_work(3, 100, 4);
  EXPECT_EQ(work.n_rows, 12);
  EXPECT_EQ(work.positions, 400);
  EXPECT_EQ(work.row_positions, 1200);
}

TEST(CostModel, a_known_curve_is_not_corrected) {
  CostModel model(steep);
  model.add(3, 100);
  EXPECT_EQ(model.ms(3), 6);
  EXPECT_THROW(model.ms(0), ContractError);
}

}  // namespace
}  // namespace engine

// Compares rope frequencies with those of transformers 5 for the same settings (computed in f32, so
// 1e-6).
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/rope.h"

namespace engine {
namespace {

using Type = RopeConfig::Type;

void expect_frequencies(const RopeConfig& rope, int seq_len, const std::vector<double>& expected) {
  const std::vector<double> f = rope_frequencies(rope, 16, seq_len);
  ASSERT_EQ(f.size(), expected.size());
  for (std::size_t i = 0; i < f.size(); i++)
    EXPECT_NEAR(f[i] / expected[i], 1.0, 1e-6) << "pair " << i;
}

TEST(Rope, default_and_linear_frequencies_equal_transformers) {
  expect_frequencies(
      {}, 0, {1.0, 0.316227764, 0.1, 0.0316227786, 0.01, 0.00316227786, 0.001, 0.000316227786});
  expect_frequencies(
      {.type = Type::Linear, .factor = 4}, 0,
      {0.25, 0.079056941, 0.025, 0.00790569466, 0.0025, 0.000790569466, 0.00025, 7.90569466e-05});
}

TEST(Rope, dynamic_frequencies_change_only_past_the_original_length) {
  const RopeConfig rope{.type = Type::Dynamic, .factor = 2, .original_max_seq_len = 64};
  EXPECT_EQ(rope_frequencies(rope, 16, 64), rope_frequencies({}, 16, 0));
  expect_frequencies(rope, 100,
                     {1.0, 0.283945143, 0.0806248412, 0.0228930302, 0.00650036521, 0.001845747,
                      0.000524090894, 0.000148813066});
}

TEST(Rope, yarn_frequencies_and_factor_equal_transformers) {
  RopeConfig rope{.type = Type::Yarn, .factor = 4, .original_max_seq_len = 64};
  expect_frequencies(
      rope, 0,
      {1.0, 0.237170815, 0.05, 0.00790569466, 0.0025, 0.000790569466, 0.00025, 7.90569466e-05});
  EXPECT_NEAR(rope_attention_factor(rope), 1.138629436111989, 1e-12);

  rope.truncate = false;
  rope.mscale = 0.7;
  rope.mscale_all_dim = 1.3;
  rope.beta_fast = 16;
  rope.beta_slow = 2;
  expect_frequencies(
      rope, 0,
      {1.0, 0.14849025, 0.025, 0.00790569466, 0.0025, 0.000790569466, 0.00025, 7.90569466e-05});
  EXPECT_NEAR(rope_attention_factor(rope), 0.9295234923939468, 1e-12);
}

TEST(Rope, llama3_frequencies_equal_transformers) {
  expect_frequencies({.type = Type::Llama3,
                      .factor = 8,
                      .original_max_seq_len = 64,
                      .low_freq_factor = 1,
                      .high_freq_factor = 4},
                     0,
                     {1.0, 0.244384587, 0.0130422562, 0.00395284733, 0.00125, 0.000395284733,
                      0.000125, 3.95284733e-05});
}

TEST(Rope, longrope_frequencies_and_factor_equal_transformers) {
  RopeConfig rope{.type = Type::Longrope, .factor = 4, .original_max_seq_len = 64};
  rope.short_factor = {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
  rope.long_factor = {1, 2, 3, 4, 5, 6, 7, 8};
  expect_frequencies(rope, 64,
                     {1.0, 0.287479788, 0.083333336, 0.0243252143, 0.00714285718, 0.00210818532,
                      0.000625, 0.000186016338});
  expect_frequencies(rope, 65,
                     {1.0, 0.158113882, 0.0333333351, 0.00790569466, 0.002, 0.000527046272,
                      0.000142857141, 3.95284733e-05});
  EXPECT_NEAR(rope_attention_factor(rope), 1.1547005383792515, 1e-12);
  rope.attention_factor = 1.25;
  EXPECT_EQ(rope_attention_factor(rope), 1.25);
}

TEST(Rope, rows_of_a_long_prompt_use_its_length) {
  const auto device = kernels::open_cpu(1);
  const RopeConfig dynamic{.type = Type::Dynamic, .factor = 2, .original_max_seq_len = 64};
  RopeConfig longrope{.type = Type::Longrope, .factor = 4, .original_max_seq_len = 64};
  longrope.short_factor = {1, 1, 1, 1};
  longrope.long_factor = {2, 2, 2, 2};
  for (const RopeConfig& rope : {dynamic, longrope}) {
    RopeTable table(*device, rope, 8, 64);
    table.reserve(200);
    const auto angles = [&](int row) {
      std::vector<float> all(static_cast<std::size_t>(row + 1) * 8);
      device->ops().download(*device, all.data(), table.data(),
                             static_cast<std::int64_t>(all.size() * sizeof(float)));
      return std::vector<float>(all.end() - 8, all.end());
    };
    const auto expected = [&](int pos, int seq_len) {
      std::vector<float> row;
      for (const double f : rope_frequencies(rope, 8, seq_len)) {
        row.push_back(static_cast<float>(std::cos(pos * f) * rope_attention_factor(rope)));
        row.push_back(static_cast<float>(std::sin(pos * f) * rope_attention_factor(rope)));
      }
      return row;
    };
    // A prompt of 100 tokens, one of 64, and tokens after prompts: each row uses its own length.
    const int pos[] = {3, 99, 3, 63, 120, 98}, n_prompt[] = {100, 100, 64, 64, 64, 100};
    const int length[] = {100, 100, 64, 64, 121, 100};
    const auto rows = table.rows_of(pos, n_prompt);
    for (std::size_t i = 0; i < rows.size(); i++)
      EXPECT_EQ(angles(rows[i]), expected(pos[i], length[i])) << "row " << i;
    EXPECT_EQ(rows[2], 3) << "from the table";
    EXPECT_EQ(rope.rotation_key(64), 0);
    EXPECT_NE(rope.rotation_key(65), 0);
  }
}

TEST(Rope, a_grown_table_keeps_its_rows) {
  const auto device = kernels::open_cpu(1);
  for (const Type type : {Type::Default, Type::Dynamic, Type::Yarn}) {
    RopeTable table(*device, {.type = type, .factor = 2}, 8, 100);
    table.reserve(1);
    const int n = table.n_positions();
    std::vector<float> before(static_cast<std::size_t>(n) * 8);
    const auto bytes = static_cast<std::int64_t>(before.size() * sizeof(float));
    device->ops().download(*device, before.data(), table.data(), bytes);
    table.reserve(n + 1);
    EXPECT_GT(table.n_positions(), n);
    std::vector<float> after(before.size());
    device->ops().download(*device, after.data(), table.data(), bytes);
    EXPECT_EQ(before, after);
    EXPECT_EQ(before[0],
              before[1] + static_cast<float>(rope_attention_factor({.type = type, .factor = 2})));
  }
}

TEST(Rope, refuses_unsupported_settings) {
  EXPECT_THROW(rope_frequencies({}, 7, 0), ContractError);
  EXPECT_THROW(rope_frequencies({.type = Type::Yarn, .factor = 2}, 8, 0), ContractError);
}

}  // namespace
}  // namespace engine

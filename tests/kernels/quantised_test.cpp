// Products with quantised weights: against double loops, bit for bit between instruction sets, rows and threads.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/error.h"
#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

const std::vector<DType> kQuantised = {DType::Q4_0, DType::Q4_1, DType::Q4_K, DType::Q8_0,
                                       DType::Q8_G};
struct Shape {
  int n, k;
};
// 1056 has more blocks of 32 than a pass over a panel takes at once.
const Shape kShapes[] = {{1, 32}, {16, 64}, {17, 96}, {131, 192}, {37, 1056}};

bool has_minimum(DType type) {
  return type == DType::Q4_1 || type == DType::Q4_K || type == DType::Q8_G;
}
bool has_halves(DType type) {
  return type != DType::Q4_K && type != DType::Q8_G;
}
int least_q(DType type) {
  return type == DType::Q4_0 ? -8 : type < DType::Q8_0 ? 0 : -128;
}
int largest_q(DType type) {
  return type == DType::Q4_0 ? 7 : type < DType::Q8_0 ? 15 : 127;
}

/// Quantised weights of a test, in host memory.
struct Weights {
  DType type;
  int n, k, group;
  std::vector<std::int8_t> q;
  std::vector<float> scale, minimum;

  Weights(DType of, int outputs, int inputs, int group_size = 32)
      : type(of),
        n(outputs),
        k(inputs),
        group(group_size),
        q(std::size_t(outputs) * inputs),
        scale(std::size_t(outputs) * inputs / group_size),
        minimum(scale.size()) {}
  QuantisedRows rows() const {
    return {q.data(), scale.data(), has_minimum(type) ? minimum.data() : nullptr, group};
  }
  std::size_t group_of(int i, int j) const { return std::size_t(i) * (k / group) + j / group; }
  double scaled(int i, int j) const {
    return double(scale[group_of(i, j)]) * q[std::size_t(i) * k + j];
  }
  double least(int i, int j) const { return has_minimum(type) ? minimum[group_of(i, j)] : 0.0; }
};

float storable(float x, DType type) {
  return has_halves(type) ? stored(x, DType::F16) : x;
}

Weights random_weights(DType type, int n, int k, int group = 32) {
  Weights w(type, n, k, group);
  std::mt19937 random(7);
  std::uniform_int_distribution<int> q(least_q(type), largest_q(type));
  std::normal_distribution<float> normal(0, 0.02f);
  for (std::int8_t& each : w.q) each = static_cast<std::int8_t>(q(random));
  for (float& each : w.scale) each = storable(normal(random), type);
  for (float& each : w.minimum) each = storable(4 * normal(random), type);
  return w;
}

Packed pack(Device& device, const Weights& w) {
  Packed packed;
  packed.buffer = Fenced(device.ops().packed_bytes(w.type, w.n, w.k), 64);
  device.ops().pack_quantised(device, w.rows(), w.n, w.k, w.type, packed.buffer.data());
  packed.matrix = {packed.buffer.data(), w.n, w.k, w.type};
  return packed;
}

std::vector<float> product(Device& device, const Packed& w, const float* x, int n_rows) {
  const auto [data, n, k, dtype] = w.matrix;
  Guarded input(std::vector<float>(x, x + std::size_t(n_rows) * k)), y(std::size_t(n_rows) * n);
  device.ops().matmul(device, w.matrix, input.data(), k, n_rows, y.data(), n, nullptr, false);
  EXPECT_TRUE(input.intact() && y.intact());
  return {y.data(), y.data() + std::size_t(n_rows) * n};
}

/// The activations as a product sees them: x rounded to 255 levels of its block of 32.
std::vector<double> quantised(const std::vector<float>& x) {
  std::vector<double> result(x.size());
  for (std::size_t block = 0; block < x.size(); block += 32) {
    float top = 0;
    for (std::size_t i = block; i < block + 32; i++) top = std::max(top, std::fabs(x[i]));
    for (std::size_t i = block; i < block + 32; i++)
      result[i] = top == 0 ? 0 : double(top / 127.0f) * std::nearbyint(x[i] * (127.0f / top));
  }
  return result;
}

/// Runs `body(device, type, group)` for every instruction set, type and group of the type.
template <class Body>
void for_each_type(const Body& body) {
  for_each_device(
      [&](Device& device) {
        for (const DType type : kQuantised) {
          for (const int group : {32, 16}) {
            if (group == 16 && type != DType::Q8_G) continue;
            SCOPED_TRACE(std::string(name_of(type)) + " group " + std::to_string(group));
            body(device, type, group);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      },
      {2});
}

TEST(Quantised, product_equals_a_double_loop) {
  for_each_type([](Device& device, DType type, int group) {
    for (const auto [n, k] : kShapes) {
      const Weights w = random_weights(type, n, k, group);
      const Packed packed = pack(device, w);
      for (const int n_rows : {1, 3, 5, 17, 34}) {
        const auto values = normal_values(std::size_t(n_rows) * k, 2);
        const std::vector<double> x = quantised(values);
        Guarded input(values), bias(normal_values(n, 3));
        const auto before = normal_values(std::size_t(n_rows) * n, 4);
        for (const bool with_more : {false, true}) {
          Guarded y(before);
          device.ops().matmul(device, packed.matrix, input.data(), k, n_rows, y.data(), n,
                              with_more ? bias.data() : nullptr, with_more);
          ASSERT_TRUE(y.intact() && input.intact() && bias.intact());
          for (int r = 0; r < n_rows; r++) {
            for (int i = 0; i < n; i++) {
              const std::size_t at = std::size_t(r) * n + i;
              double sum = with_more ? double(bias[i]) + before[at] : 0;
              double size = with_more ? std::fabs(bias[i]) + std::fabs(before[at]) : 0;
              for (int j = 0; j < k; j++) {
                const double each = x[std::size_t(r) * k + j];
                sum += each * (w.scaled(i, j) + w.least(i, j));
                size += std::fabs(each) * (std::fabs(w.scaled(i, j)) + std::fabs(w.least(i, j)));
              }
              // The integer sums are exact. A group of weights takes at most four roundings to f32, each within 2^-24.
              const double allowed = (4.0 * k / group + 3) * 0x1p-24 * size + 1e-30;
              ASSERT_NEAR(y[at], sum, allowed) << "n " << n << " k " << k << " rows " << n_rows
                                               << " row " << r << " output " << i;
            }
          }
        }
      }
    }
  });
}

/// The nearest quantised weights to w [n, k], and a bound on the error of each weight of a group.
struct Nearest {
  Weights weights;
  std::vector<float> error;  // [n, k / 32]
};
Nearest nearest(const std::vector<float>& w, DType type, int n, int k) {
  Nearest result{Weights(type, n, k), {}};
  const float levels = float(largest_q(type) - least_q(type));
  for (std::size_t group = 0; group < w.size() / 32; group++) {
    const float* from = w.data() + group * 32;
    const auto [low, high] = std::minmax_element(from, from + 32);
    const float top = std::max(-*low, *high);
    const bool shifted = has_minimum(type);
    const float scale =
        storable(shifted ? (*high - *low) / levels : top / float(largest_q(type)), type);
    const float minimum = shifted ? storable(*low - scale * float(least_q(type)), type) : 0;
    for (int j = 0; j < 32; j++)
      result.weights.q[group * 32 + j] =
          static_cast<std::int8_t>(std::clamp(std::nearbyint((from[j] - minimum) / scale),
                                              float(least_q(type)), float(largest_q(type))));
    result.weights.scale[group] = scale;
    result.weights.minimum[group] = minimum;
    // Half a step, and at the ends what the scale and the minimum lost when they were rounded to f16.
    result.error.push_back(0.5f * scale + 0x1p-10f * (levels * scale + std::fabs(minimum)));
  }
  return result;
}

// A product's error is bounded by that of the weights times |x|, and by half a step of the activations, max |x| / 254 of
// their block, times |w|.
TEST(Quantised, error_against_f32_is_that_of_the_type_and_of_int8) {
  const int n = 67, k = 576, n_rows = 9;
  const auto w = normal_values(std::size_t(n) * k, 11, 0.05f);
  const auto x = normal_values(std::size_t(n_rows) * k, 12);
  for_each_type([&](Device& device, DType type, int group) {
    if (group != 32) return;
    const Nearest rounded = nearest(w, type, n, k);
    const std::vector<float> y = product(device, pack(device, rounded.weights), x.data(), n_rows);
    SquaredError error;
    for (int r = 0; r < n_rows; r++) {
      for (int i = 0; i < n; i++) {
        double exact = 0, allowed = 0, size = 0;
        for (int block = 0; block < k / 32; block++) {
          const float* x_at = x.data() + std::size_t(r) * k + block * 32;
          const float* w_at = w.data() + std::size_t(i) * k + block * 32;
          const double w_error = rounded.error[std::size_t(i) * (k / 32) + block];
          double top = 0;
          for (int j = 0; j < 32; j++) top = std::max(top, std::fabs(double(x_at[j])));
          for (int j = 0; j < 32; j++) {
            exact += double(x_at[j]) * w_at[j];
            size += std::fabs(double(x_at[j]) * w_at[j]);
            allowed += std::fabs(x_at[j]) * w_error + top / 254 * (std::fabs(w_at[j]) + w_error);
          }
        }
        ASSERT_NEAR(y[std::size_t(r) * n + i], exact, 1.0001 * allowed + k * 0x1p-22 * size);
        error.add(y[std::size_t(r) * n + i], exact);
      }
    }
    EXPECT_LT(error.normalized(), type < DType::Q8_0 ? 1e-2 : 1e-4);
  });
}

// Largest and smallest q beside largest activations, where instructions of 16 bits would saturate.
Weights extreme_weights(DType type, int n, int k) {
  Weights w = random_weights(type, n, k);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k; j++) {
      const bool low = i % 4 == 0 || (i % 4 == 2 && j % 2 == 0) || (i % 4 == 3 && j % 64 < 32);
      w.q[std::size_t(i) * k + j] = static_cast<std::int8_t>(low ? least_q(type) : largest_q(type));
    }
  return w;
}
std::vector<float> extreme_rows(int n_rows, int k) {
  std::vector<float> x = normal_values(std::size_t(n_rows) * k, 21);
  for (int r = 0; r < n_rows && r < 4; r++)
    for (int j = 0; j < k; j++)
      x[std::size_t(r) * k + j] = r < 2 ? (r ? -3.0f : 3.0f) : (j / r % 2 ? 3.0f : -3.0f);
  return x;
}

TEST(Quantised, every_instruction_set_gives_the_same_bits) {
  const int n_rows = 29;
  for (const DType type : kQuantised) {
    for (const auto [n, k] : kShapes) {
      for (const bool extreme : {false, true}) {
        const Weights w = extreme ? extreme_weights(type, n, k) : random_weights(type, n, k);
        const auto x =
            extreme ? extreme_rows(n_rows, k) : normal_values(std::size_t(n_rows) * k, 9);
        std::vector<float> expected;
        for (const Ops* ops : all_cpu_ops()) {
          const auto device = open_cpu(2, *ops);
          const std::vector<float> y = product(*device, pack(*device, w), x.data(), n_rows);
          if (expected.empty()) expected = y;
          ASSERT_EQ(0, std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)))
              << ops->name << " " << name_of(type) << " n " << n << " k " << k << " extreme "
              << extreme;
        }
      }
    }
  }
}

TEST(Quantised, product_is_batch_invariant_for_any_thread_count) {
  constexpr int kRows = 300;
  for (const Ops* ops : all_cpu_ops()) {
    for (const DType type : kQuantised) {
      for (const auto [n, k] : {Shape{83, 64}, Shape{45, 96}, Shape{144, 544}}) {
        const Weights w = random_weights(type, n, k);
        const auto x = normal_values(std::size_t(kRows) * k, 6);
        std::vector<float> alone;
        {
          const auto device = open_cpu(1, *ops);
          const Packed packed = pack(*device, w);
          for (int r = 0; r < kRows; r++) {
            const auto y = product(*device, packed, x.data() + std::size_t(r) * k, 1);
            alone.insert(alone.end(), y.begin(), y.end());
          }
        }
        for (const int n_threads : {1, 2, 3}) {
          const auto device = open_cpu(n_threads, *ops);
          const Packed packed = pack(*device, w);
          for (const int n_rows : {2, 3, 4, 5, 7, 8, 12, 13, 16, 24, 25, 33, 64, 65, 129, 300}) {
            std::vector<int> rows(kRows);
            std::iota(rows.begin(), rows.end(), 0);
            std::shuffle(rows.begin(), rows.end(), std::mt19937(n_rows));
            std::vector<float> some;
            for (int i = 0; i < n_rows; i++)
              some.insert(some.end(), x.begin() + std::ptrdiff_t(rows[i]) * k,
                          x.begin() + std::ptrdiff_t(rows[i] + 1) * k);
            const auto y = product(*device, packed, some.data(), n_rows);
            for (int i = 0; i < n_rows; i++)
              ASSERT_EQ(0, std::memcmp(y.data() + std::size_t(i) * n,
                                       alone.data() + std::size_t(rows[i]) * n, 4 * n))
                  << ops->name << " " << name_of(type) << " n " << n << " rows " << n_rows
                  << " threads " << n_threads << " row " << i;
          }
        }
      }
    }
  }
}

TEST(Quantised, zeros_appended_to_k_change_no_bit) {
  for_each_type([](Device& device, DType type, int group) {
    const int n = 50, k = 96, wide = 4 * k, n_rows = 5;
    const Weights w = random_weights(type, n, k, group);
    Weights wide_w = random_weights(type, n, wide, group);
    const auto x = normal_values(std::size_t(n_rows) * k, 8);
    std::vector<float> wide_x(std::size_t(n_rows) * wide);
    for (int r = 0; r < n_rows; r++)
      std::copy_n(x.data() + std::size_t(r) * k, k, wide_x.data() + std::size_t(r) * wide);
    for (int i = 0; i < n; i++) {
      std::copy_n(w.q.data() + std::size_t(i) * k, k, wide_w.q.data() + std::size_t(i) * wide);
      std::copy_n(&w.scale[w.group_of(i, 0)], k / group, &wide_w.scale[wide_w.group_of(i, 0)]);
      std::copy_n(&w.minimum[w.group_of(i, 0)], k / group, &wide_w.minimum[wide_w.group_of(i, 0)]);
    }
    const auto y = product(device, pack(device, w), x.data(), n_rows);
    const auto wide_y = product(device, pack(device, wide_w), wide_x.data(), n_rows);
    ASSERT_EQ(0, std::memcmp(y.data(), wide_y.data(), y.size() * sizeof(float)));
  });
}

TEST(Quantised, embed_returns_the_exact_weights) {
  for_each_type([](Device& device, DType type, int group) {
    for (const auto [n, k] : kShapes) {
      const Weights w = random_weights(type, n, k, group);
      const Packed packed = pack(device, w);
      std::vector<std::int32_t> ids(n);
      std::iota(ids.rbegin(), ids.rend(), 0);
      Guarded y(std::size_t(n) * k);
      device.ops().embed(device, packed.matrix, ids.data(), n, y.data());
      ASSERT_TRUE(y.intact());
      for (int r = 0; r < n; r++)
        for (int j = 0; j < k; j++) {
          const auto scaled = static_cast<float>(w.scaled(ids[r], j));
          const auto expected = static_cast<float>(scaled + w.least(ids[r], j));
          ASSERT_EQ(y[std::size_t(r) * k + j], expected) << "output " << ids[r] << " input " << j;
        }
    }
  });
}

TEST(Quantised, non_finite_activations_make_their_row_nan) {
  for_each_type([](Device& device, DType type, int group) {
    const int n = 21, k = 96, n_rows = 6;
    const Packed packed = pack(device, random_weights(type, n, k, group));
    auto x = normal_values(n_rows * k, 5);
    const auto y = product(device, packed, x.data(), n_rows);
    x[1 * k + 40] = std::numeric_limits<float>::quiet_NaN();
    x[2 * k + 0] = std::numeric_limits<float>::infinity();
    x[4 * k + 95] = -std::numeric_limits<float>::infinity();
    const auto bad = product(device, packed, x.data(), n_rows);
    for (int r = 0; r < n_rows; r++)
      for (int i = 0; i < n; i++) {
        if (r == 1 || r == 2 || r == 4)
          ASSERT_TRUE(std::isnan(bad[r * n + i])) << "row " << r << " output " << i;
        else
          ASSERT_EQ(bits_of(bad[r * n + i]), bits_of(y[r * n + i]));
      }
  });
}

TEST(Quantised, tiny_and_huge_activations_stay_finite) {
  for_each_type([](Device& device, DType type, int group) {
    const int n = 17, k = 64;
    const Packed packed = pack(device, random_weights(type, n, k, group));
    for (const float size : {0.0f, 1e-45f, 1e-38f, 1e-30f, 1e30f}) {
      const std::vector<float> x(k, size);
      for (const float y : product(device, packed, x.data(), 1)) {
        ASSERT_TRUE(std::isfinite(y)) << size;
        ASSERT_LE(std::fabs(y), 64 * k * double(size) + 1e-30) << size;
      }
    }
  });
}

TEST(Quantised, impossible_arguments_are_contract_errors) {
  const auto device = open_cpu(1);
  const Ops& ops = device->ops();
  std::vector<char> memory(1 << 16);
  const auto fails = [&](const Weights& w) {
    EXPECT_THROW(ops.pack_quantised(*device, w.rows(), w.n, w.k, w.type, memory.data()),
                 ContractError)
        << name_of(w.type);
  };
  const std::vector<float> f32(33, 1.0f);
  for (const DType type : kQuantised) {
    EXPECT_THROW(ops.packed_bytes(type, 16, 33), ContractError);
    EXPECT_THROW(bytes_of(type), ContractError);
    EXPECT_THROW(ops.pack(*device, f32.data(), DType::F32, 1, 32, type, memory.data()),
                 ContractError);
    fails(Weights(type, 2, 48, 16));
    if (type != DType::Q8_G) fails(Weights(type, 2, 64, 16));
    const PackedMatrix odd = {memory.data(), 1, 33, type};
    std::vector<float> y(1);
    EXPECT_THROW(ops.matmul(*device, odd, f32.data(), 33, 1, y.data(), 1, nullptr, false),
                 ContractError);
    Weights w(type, 2, 32);
    if (least_q(type) > -128) {
      w.q[5] = static_cast<std::int8_t>(largest_q(type) + 1);
      fails(w);
      w.q[5] = static_cast<std::int8_t>(least_q(type) - 1);
      fails(w);
      w.q[5] = 0;
    }
    w.scale[1] = 1 + 0x1p-20f;
    if (has_halves(type)) fails(w);
  }
  Weights w(DType::Q4_0, 2, 32);
  QuantisedRows rows = w.rows();
  rows.minimum = w.scale.data();
  EXPECT_THROW(ops.pack_quantised(*device, rows, 2, 32, DType::Q4_0, memory.data()), ContractError);
  EXPECT_THROW(ops.pack_quantised(*device, rows, 2, 32, DType::F16, memory.data()), ContractError);
}

TEST(Quantised, names_are_of_types_that_no_cache_has) {
  for (const DType type : kQuantised) EXPECT_EQ(dtype_named(name_of(type)), std::nullopt);
  EXPECT_STREQ(name_of(DType::Q4_K), "q4_k");
}

}  // namespace
}  // namespace kernels::test

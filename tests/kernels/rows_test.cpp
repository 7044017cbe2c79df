// RMS norm, rope, SwiGLU, rounding: against double loops; with appended zeros; at odd sizes.
#include <algorithm>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

const int kDims[] = {1, 5, 16, 63, 64, 65, 192, 300};

TEST(RmsNorm, equals_a_double_loop_in_place_or_not) {
  for_each_device([](Device& device) {
    for (const int dim : kDims) {
      for (const int n_rows : {1, 2, 40}) {
        Guarded w(normal_values(dim, 1)), x(normal_values(std::size_t(n_rows) * dim, 2));
        Guarded y(n_rows * dim), in_place(normal_values(std::size_t(n_rows) * dim, 2));
        device.ops().rms_norm(device, x.data(), w.data(), y.data(), n_rows, dim, 1e-5f);
        device.ops().rms_norm(device, in_place.data(), w.data(), in_place.data(), n_rows, dim,
                              1e-5f);
        ASSERT_TRUE(y.intact() && in_place.intact());
        for (int r = 0; r < n_rows; r++) {
          double sum = 0;
          for (int i = 0; i < dim; i++) sum += double(x[r * dim + i]) * x[r * dim + i];
          const double scale = 1 / std::sqrt(sum / dim + 1e-5f);
          for (int i = 0; i < dim; i++) {
            const double exact = x[r * dim + i] * scale * w[i];
            // The sum has at most dim / 64 + 8 roundings, whose error the root halves; six more
            // follow.
            ASSERT_NEAR(y[r * dim + i], exact,
                        (dim / 64 + 14) * 0x1p-24 * std::fabs(exact) + 1e-30);
            ASSERT_EQ(bits_of(y[r * dim + i]), bits_of(in_place[r * dim + i]));
          }
        }
      }
    }
  });
}

TEST(RmsNorm, padding_with_zeros_to_four_times_doubles_the_value) {
  for_each_device(
      [](Device& device) {
        for (const int dim : {10, 64, 192, 250}) {
          const auto x = normal_values(dim, 3);
          const auto w = normal_values(dim, 4);
          std::vector<float> wide_x(4 * dim), wide_w(4 * dim), y(dim), wide_y(4 * dim);
          std::copy(x.begin(), x.end(), wide_x.begin());
          for (int i = 0; i < dim; i++) wide_w[i] = w[i] / 2;
          device.ops().rms_norm(device, x.data(), w.data(), y.data(), 1, dim, 1e-5f);
          device.ops().rms_norm(device, wide_x.data(), wide_w.data(), wide_y.data(), 1, 4 * dim,
                                1e-5f / 4);
          for (int i = 0; i < dim; i++)
            ASSERT_EQ(bits_of(y[i]), bits_of(wide_y[i])) << "dim " << dim;
          for (int i = dim; i < 4 * dim; i++) ASSERT_EQ(0, wide_y[i]);
        }
      },
      {1});
}

TEST(Rope, rotates_the_halves_of_each_head) {
  for_each_device([](Device& device) {
    for (const int head_dim : {2, 6, 64, 80}) {
      const int n_heads = 3, n_rows = 21, width = n_heads * head_dim, stride = width + 7;
      Guarded table(normal_values(50 * head_dim, 5));
      const auto before = normal_values(n_rows * stride, 6);
      std::vector<int> pos(n_rows);
      for (int r = 0; r < n_rows; r++) pos[r] = (r * 13) % 50;
      Guarded x({before.begin(), before.end() - (stride - width)});  // the last row has no padding
      device.ops().rope(device, x.data(), stride, n_rows, n_heads, head_dim, pos.data(),
                        table.data());
      ASSERT_TRUE(x.intact());
      for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < width; i++) {
          const int d = i % head_dim, half = head_dim / 2, pair = d % half;
          const double c = table[pos[r] * head_dim + 2 * pair],
                       s = table[pos[r] * head_dim + 2 * pair + 1];
          const double low = before[r * stride + i - d + pair],
                       high = before[r * stride + i - d + half + pair];
          const double exact = d < half ? low * c - high * s : high * c + low * s;
          ASSERT_NEAR(x[r * stride + i], exact,
                      3 * 0x1p-24 * (std::fabs(low) + std::fabs(high)) * 5);
        }
        for (int i = width; i < stride && r + 1 < n_rows; i++)
          ASSERT_EQ(x[r * stride + i], before[r * stride + i]);
      }
    }
  });
}

double exact_gate(Gate kind, double x) {
  if (kind == Gate::Silu) return x / (1 + std::exp(-x));
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(Glu, equals_a_double_loop_up_to_large_values) {
  for_each_device([](Device& device) {
    for (const Gate kind : {Gate::Silu, Gate::GeluTanh}) {
      for (const int hidden : {1, 17, 64, 513, 1030}) {
        for (const int n_rows : {1, 3, 30}) {
          Guarded x(normal_values(std::size_t(n_rows) * 2 * hidden, 7, 8));
          x[0] = -200;
          if (hidden > 1) x[1] = 200;
          Guarded y(std::size_t(n_rows) * hidden);
          device.ops().glu(device, kind, x.data(), y.data(), n_rows, hidden);
          ASSERT_TRUE(y.intact());
          for (int r = 0; r < n_rows; r++) {
            for (int i = 0; i < hidden; i++) {
              const double gate = x[r * 2 * hidden + i], up = x[r * 2 * hidden + hidden + i];
              const double exact = exact_gate(kind, gate) * up;
              // exp is accurate to 2^-22 relative; the cut at exp(88) leaves 1e-36. GELU's exponent, at most 88, is
              // rounded five times: 5 * 88 * 2^-24 = 2^-15.
              const double rounding = kind == Gate::Silu ? 0x1p-20 : 0x1p-15;
              ASSERT_NEAR(y[std::size_t(r) * hidden + i], exact,
                          rounding * std::fabs(exact) + 1e-33)
                  << "gate " << gate << " up " << up;
            }
          }
        }
      }
    }
  });
}

TEST(HeadNorm, is_the_norm_of_each_head) {
  for_each_device([](Device& device) {
    for (const int head_dim : {2, 36, 64, 130}) {
      const int n_heads = 3, n_kv_heads = 2, n_rows = 9, n = n_heads + n_kv_heads;
      const int stride = n * head_dim + 5;
      Guarded w(normal_values(2 * head_dim, 12));
      const auto before = normal_values(n_rows * stride, 13);
      Guarded x({before.begin(), before.end() - 5});
      device.ops().head_norm(device, x.data(), stride, n_rows, n_heads, n_kv_heads, head_dim,
                             w.data(), 1e-6f);
      ASSERT_TRUE(x.intact());
      std::vector<float> head(head_dim);
      for (int r = 0; r < n_rows; r++) {
        for (int h = 0; h < n; h++) {
          const float* from = before.data() + r * stride + h * head_dim;
          device.ops().rms_norm(device, from, w.data() + (h < n_heads ? 0 : head_dim), head.data(),
                                1, head_dim, 1e-6f);
          for (int i = 0; i < head_dim; i++)
            ASSERT_EQ(bits_of(x[r * stride + h * head_dim + i]), bits_of(head[i]));
        }
        for (int i = n * head_dim; i < stride && r + 1 < n_rows; i++)
          ASSERT_EQ(x[r * stride + i], before[r * stride + i]);
      }
    }
  });
}

TEST(ScaleAndCap, equals_a_double_loop) {
  for_each_device([](Device& device) {
    for (const int n : {1, 16, 70, 9000}) {
      for (const float cap : {0.0f, 0.3f, 30.0f}) {
        const auto before = normal_values(n, 14, 20);
        Guarded x(before);
        device.ops().scale_and_cap(device, x.data(), n, 1.7f, cap);
        ASSERT_TRUE(x.intact());
        for (int i = 0; i < n; i++) {
          const double scaled = double(1.7f) * before[i];
          const double exact = cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
          // About eight roundings.
          ASSERT_NEAR(x[i], exact, 0x1p-21 * std::fabs(exact)) << before[i] << " cap " << cap;
        }
      }
    }
    float special[] = {NAN, INFINITY, -INFINITY, 0, 1e-30f};
    device.ops().scale_and_cap(device, special, 5, 1, 30);
    EXPECT_TRUE(std::isnan(special[0]));
    EXPECT_EQ(special[1], 30);
    EXPECT_EQ(special[2], -30);
    EXPECT_EQ(special[3], 0);
    EXPECT_NEAR(special[4], 1e-30f, 1e-36f);
  });
}

TEST(Rounding, staged_rows_are_rounded_to_the_nearest_value) {
  for_each_device(
      [](Device& device) {
        std::vector<float> x = normal_values(1000, 10);
        std::mt19937 random(11);
        for (int i = 0; i < 2000;
             i++) {  // any bit pattern of a number in half precision's wider range
          float value = std::bit_cast<float>(std::uint32_t(random()));
          if (std::isfinite(value)) x.push_back(value);
          x.push_back(std::ldexp(value = float(random() % 4096) / 4096, -int(random() % 30)));
        }
        for (const float special : {0.f, -0.f, INFINITY, -INFINITY, 65504.f, 65519.9f, 65520.f,
                                    0x1p-24f, 0x1p-25f, 0x1.8p-25f, 1.00390625f, 1.01171875f})
          x.push_back(special);
        const int n = int(x.size());
        std::vector<std::uint16_t> half(n), brain(n);
        device.ops().kv_stage(device, x.data(), n, 1, 1, n, DType::F16, half.data());
        device.ops().kv_stage(device, x.data(), n, 1, 1, n, DType::BF16, brain.data());
        for (int i = 0; i < n; i++) {
          ASSERT_EQ(half[i], f16_from_f32(x[i])) << x[i];
          ASSERT_EQ(brain[i], bf16_from_f32(x[i])) << x[i];
        }
        const float nan = NAN;
        device.ops().kv_stage(device, &nan, 1, 1, 1, 1, DType::BF16, brain.data());
        EXPECT_TRUE(std::isnan(f32_from_bf16(brain[0])));
        device.ops().kv_stage(device, &nan, 1, 1, 1, 1, DType::F16, half.data());
        EXPECT_TRUE(std::isnan(f32_from_f16(half[0])));
      },
      {1});
}

TEST(Rounding, half_precision_values_round_trip) {
  for (std::uint32_t bits = 0; bits < 0x10000; bits++) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f32_from_f16(half);
    if (!std::isnan(value)) {
      ASSERT_EQ(f16_from_f32(value), half);
    }
  }
}

}  // namespace
}  // namespace kernels::test

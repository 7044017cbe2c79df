// Packing, products, embedding look-up: against double loops, and bit for bit for any rows and
// threads.
#include <algorithm>
#include <numeric>

#include "tests/kernels/kernel_test_support.h"

namespace kernels::test {
namespace {

struct Shape {
  int n, k;
};
const Shape kShapes[] = {{1, 1},   {16, 32},   {17, 33},   {40, 7},
                         {96, 64}, {131, 190}, {200, 384}, {33, 700}};

void multiply(Device& device,
              const Packed& w,
              const float* x,
              int n_rows,
              float* y,
              const float* bias = nullptr,
              bool add = false) {
  device.ops().matmul(device, w.matrix, x, w.matrix.k, n_rows, y, w.matrix.n, bias, add);
}

TEST(Matmul, equals_a_double_loop_for_every_set_type_and_shape) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const Shape shape : kShapes) {
            for (const int n_rows : {1, 2, 3, 5, 8, 17, 34}) {
              const auto [n, k] = shape;
              SCOPED_TRACE(std::string(name_of(dtype)) + " n " + std::to_string(n) + " k " +
                           std::to_string(k) + " rows " + std::to_string(n_rows));
              const auto w = normal_values(std::size_t(n) * k, 1);
              Guarded bias(normal_values(n, 3));
              Guarded x(normal_values(std::size_t(n_rows) * k, 2));
              const auto before = normal_values(std::size_t(n_rows) * n, 4);
              const Packed packed = pack(device, w, n, k, dtype);
              for (const bool with_more : {false, true}) {
                Guarded y(before);
                multiply(device, packed, x.data(), n_rows, y.data(),
                         with_more ? bias.data() : nullptr, with_more);
                ASSERT_TRUE(y.intact());
                SquaredError error;
                for (int r = 0; r < n_rows; r++) {
                  for (int i = 0; i < n; i++) {
                    double sum = 0, size = 0;
                    for (int j = 0; j < k; j++) {
                      float a = x[std::size_t(r) * k + j];
                      if (dtype == DType::BF16) a = stored(a, DType::BF16);
                      const double term = double(a) * stored(w[std::size_t(i) * k + j], dtype);
                      sum += term;
                      size += std::fabs(term);
                    }
                    if (with_more) {
                      sum += double(bias[i]) + before[std::size_t(r) * n + i];
                      size += std::fabs(bias[i]) + std::fabs(before[std::size_t(r) * n + i]);
                    }
                    // k products and sums in f32, each within 2^-24; the bf16 instructions may
                    // truncate instead of rounding, hence one bit more.
                    const double allowed = (k + 3) * 0x1p-23 * size + 1e-30;
                    ASSERT_NEAR(y[std::size_t(r) * n + i], sum, allowed)
                        << "row " << r << " output " << i;
                    error.add(y[std::size_t(r) * n + i], sum);
                  }
                }
                ASSERT_LT(error.normalized(), kMostSquaredError);
              }
              ASSERT_TRUE(x.intact());
            }
          }
        }
      },
      {2});
}

std::vector<int> row_counts() {
  std::vector<int> counts(40);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {47, 48, 49, 64, 97, 100, 129, 256});
  return counts;
}

TEST(Matmul, is_batch_invariant_for_any_thread_count) {
  for (const Ops* ops : all_cpu_ops()) {
    for (const DType dtype : kAllDTypes) {
      // The last shape has several pieces of k.
      for (const Shape shape : {Shape{83, 70}, Shape{45, 101}, Shape{144, 224}, Shape{70, 605}}) {
        const auto [n, k] = shape;
        constexpr int kRows = 256;
        const auto w = normal_values(std::size_t(n) * k, 5);
        const auto x = normal_values(std::size_t(kRows) * k, 6);
        std::vector<float> alone(std::size_t(kRows) * n);
        {
          const auto device = open_cpu(1, *ops);
          const Packed packed = pack(*device, w, n, k, dtype);
          for (int r = 0; r < kRows; r++)
            multiply(*device, packed, x.data() + std::size_t(r) * k, 1,
                     alone.data() + std::size_t(r) * n);
        }
        for (const int n_threads : {1, 2, 3}) {
          for (const int n_rows : row_counts()) {
            // A new device first takes the weights for uncached, then for cached.
            const auto device = open_cpu(n_threads, *ops);
            const Packed packed = pack(*device, w, n, k, dtype);
            // Chooses other rows each time, in random order.
            std::vector<int> rows(kRows);
            std::iota(rows.begin(), rows.end(), 0);
            std::shuffle(rows.begin(), rows.end(), std::mt19937(n_rows));
            std::vector<float> some(std::size_t(n_rows) * k), y(std::size_t(n_rows) * n);
            for (int i = 0; i < n_rows; i++)
              std::copy_n(x.data() + std::size_t(rows[i]) * k, k, some.data() + std::size_t(i) * k);
            for (const bool cached : {false, true}) {
              std::ranges::fill(y, -1.0f);
              multiply(*device, packed, some.data(), n_rows, y.data());
              for (int i = 0; i < n_rows; i++)
                ASSERT_EQ(0, std::memcmp(y.data() + std::size_t(i) * n,
                                         alone.data() + std::size_t(rows[i]) * n, 4 * n))
                    << ops->name << " " << name_of(dtype) << " n " << n << " rows " << n_rows
                    << " threads " << n_threads << " row " << i << " cached " << cached;
            }
          }
        }
      }
    }
  }
}

TEST(Matmul, zeros_appended_to_k_change_no_bit) {
  for_each_device(
      [](Device& device) {
        for (const DType dtype : kAllDTypes) {
          for (const int k : {24, 33, 192}) {
            const int n = 50, n_rows = 5, wide = 4 * k;
            const auto w = normal_values(std::size_t(n) * k, 7);
            const auto x = normal_values(std::size_t(n_rows) * k, 8);
            std::vector<float> wide_w(std::size_t(n) * wide), wide_x(std::size_t(n_rows) * wide);
            for (int i = 0; i < n; i++)
              std::copy_n(w.data() + std::size_t(i) * k, k, wide_w.data() + std::size_t(i) * wide);
            for (int r = 0; r < n_rows; r++)
              std::copy_n(x.data() + std::size_t(r) * k, k, wide_x.data() + std::size_t(r) * wide);
            std::vector<float> y(n_rows * n), wide_y(n_rows * n);
            multiply(device, pack(device, w, n, k, dtype), x.data(), n_rows, y.data());
            multiply(device, pack(device, wide_w, n, wide, dtype), wide_x.data(), n_rows,
                     wide_y.data());
            for (std::size_t i = 0; i < y.size(); i++)
              ASSERT_EQ(bits_of(y[i]), bits_of(wide_y[i]))
                  << name_of(dtype) << " k " << k << " at " << i;
          }
        }
      },
      {2});
}

TEST(Matmul, every_source_type_packs_to_its_rounded_value) {
  const auto device = open_cpu(2);
  const int n = 21, k = 35;
  const auto w = normal_values(n * k, 9);
  std::vector<std::int32_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0);
  for (const DType from : {DType::F16, DType::BF16}) {
    std::vector<std::uint16_t> narrow(n * k);
    for (int i = 0; i < n * k; i++)
      narrow[i] = from == DType::F16 ? f16_from_f32(w[i]) : bf16_from_f32(w[i]);
    for (const DType to : kAllDTypes) {
      const Fenced buffer(device->ops().packed_bytes(to, n, k), 64);
      device->ops().pack(*device, narrow.data(), from, n, k, to, buffer.data());
      Guarded y(n * k);
      device->ops().embed(*device, {buffer.data(), n, k, to}, ids.data(), n, y.data());
      ASSERT_TRUE(y.intact());
      for (int i = 0; i < n * k; i++) ASSERT_EQ(y[i], stored(stored(w[i], from), to));
    }
  }
}

TEST(Matmul, an_id_outside_the_table_is_a_contract_error) {
  const auto device = open_cpu(1);
  const Packed table = pack(*device, normal_values(8 * 4, 10), 8, 4, DType::F32);
  std::vector<float> y(4);
  for (const std::int32_t id : {-1, 8}) {
    EXPECT_ANY_THROW(device->ops().embed(*device, table.matrix, &id, 1, y.data()));
  }
}

}  // namespace
}  // namespace kernels::test

// Kernel fusion: operations that a device runs in one kernel when they follow each other give the
// bits of separate kernels (separated by a wait).
#include <functional>

#include "tests/kernels/attention_scene.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

class CudaFused : public ::testing::TestWithParam<std::string> {
 protected:
  OpenedCuda device_{GetParam(), emulation::Watch::Orders};
  const Ops& ops_ = device_->ops();

  /// Kernel launches of `work`; kernels queued before and after it are flushed.
  std::int64_t launches(const DeviceFloats& some, const std::function<void()>& work) {
    static_cast<void>(some.read());
    const std::int64_t before = device_->n_kernels();
    work();
    static_cast<void>(some.read());
    return device_->n_kernels() - before;
  }
};

/// Rows of a norm or a gate, and of the product that rounds them.
struct Rows {
  std::vector<float> made, y;
  bool operator==(const Rows&) const = default;
};

TEST_P(CudaFused, norm_before_a_16_bit_product) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const int k : {24, 64, 200, 203}) {
      const PackedOnDevice w =
          pack_on_device(*device_, normal_values(std::size_t(40) * k, 1), 40, k, dtype);
      const DeviceFloats norm(*device_, normal_values(k, 2));
      for (const int n_rows : {1, 8, 9, 40, 130}) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * k, 3));
        const auto run = [&](bool waits, std::int64_t expected) {
          const DeviceFloats made(*device_, std::vector<float>(std::size_t(n_rows) * k)),
              y(*device_, std::vector<float>(std::size_t(n_rows) * 40));
          const std::int64_t n = launches(y, [&] {
            ops_.rms_norm(*device_, x.data(), norm.data(), made.data(), n_rows, k, 1e-5f);
            if (waits) static_cast<void>(made.read());
            ops_.matmul(*device_, w.matrix, made.data(), k, n_rows, y.data(), 40, nullptr, false);
          });
          EXPECT_TRUE(n == expected || n_rows > 128) << n << " kernels of " << n_rows << " rows";
          return Rows{made.read(), y.read()};
        };
        EXPECT_EQ(run(false, 2), run(true, 3)) << n_rows << " " << k;
      }
    }
  }
}

TEST_P(CudaFused, swiglu_before_a_16_bit_product) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const int k : {24, 64, 200, 203}) {
      const PackedOnDevice w =
          pack_on_device(*device_, normal_values(std::size_t(40) * k, 1), 40, k, dtype);
      for (const int n_rows : {1, 8, 9, 40}) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * 2 * k, 3, 4));
        const auto run = [&](bool waits, std::int64_t expected) {
          const DeviceFloats made(*device_, std::vector<float>(std::size_t(n_rows) * k)),
              y(*device_, std::vector<float>(std::size_t(n_rows) * 40));
          const std::int64_t n = launches(y, [&] {
            ops_.swiglu(*device_, x.data(), made.data(), n_rows, k);
            if (waits) static_cast<void>(made.read());
            ops_.matmul(*device_, w.matrix, made.data(), k, n_rows, y.data(), 40, nullptr, false);
          });
          EXPECT_EQ(n, expected) << n_rows;
          return Rows{made.read(), y.read()};
        };
        EXPECT_EQ(run(false, 2), run(true, 3)) << n_rows << " " << k;
      }
    }
  }
}

// If the product's rows are a part of the norm's, or lie elsewhere, the norm is a separate kernel.
TEST_P(CudaFused, a_product_of_other_rows_is_not_fused_with_the_norm) {
  constexpr int kK = 64;
  const PackedOnDevice w = pack_on_device(*device_, normal_values(40 * kK, 1), 40, kK, DType::BF16);
  const DeviceFloats norm(*device_, normal_values(kK, 2)), x(*device_, normal_values(8 * kK, 3));
  struct Case {
    int first, n_rows, stride;
  };
  for (const auto& [first, n_rows, stride] : {Case{0, 3, kK}, Case{1, 4, kK}, Case{0, 4, 2 * kK}}) {
    const auto run = [&](bool waits) {
      const DeviceFloats made(*device_, std::vector<float>(8 * kK)),
          y(*device_, std::vector<float>(4 * 40));
      const std::int64_t n = launches(y, [&] {
        ops_.rms_norm(*device_, x.data(), norm.data(), made.data(), 4, kK, 1e-5f);
        if (waits) static_cast<void>(made.read());
        ops_.matmul(*device_, w.matrix, made.data() + first * kK, stride, n_rows, y.data(), 40,
                    nullptr, false);
      });
      EXPECT_EQ(n, 3);
      return Rows{made.read(), y.read()};
    };
    EXPECT_EQ(run(false), run(true)) << first << " " << n_rows << " " << stride;
  }
}

// In any order of the rows. The join is a separate kernel if rows are not adjacent or not all of
// attention's, or if the product does not round.
TEST_P(CudaFused, split_k_join_before_a_16_bit_product) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    for (const Heads& heads : {Heads{4, 2, 36}, Heads{5, 1, 17}, Heads{2, 2, 64}}) {
      const Scene scene = {heads,
                           DType::BF16,
                           {random_seq(heads, DType::BF16, 61, 5, 60, 12),
                            random_seq(heads, DType::BF16, 130, 8, 60, 13)}};
      std::vector<RowOf> rows = rows_of(scene);
      std::shuffle(rows.begin(), rows.end(), std::mt19937(3));
      const auto n_rows = static_cast<int>(rows.size());
      Forward forward(*device_, scene, rows, prefixes_of(scene), 0);
      const DeviceFloats q = forward.queries();
      const int k = forward.width();
      const PackedOnDevice w =
          pack_on_device(*device_, normal_values(std::size_t(40) * k, 1), 40, k, dtype);
      const auto run = [&](bool waits, int n_taken, int apart, std::int64_t expected) {
        const DeviceFloats made(*device_, std::vector<float>(std::size_t(n_rows) * (k + apart))),
            y(*device_, std::vector<float>(std::size_t(n_rows) * 40));
        const std::int64_t n = launches(y, [&] {
          forward.attend(q, made.data(), k + apart);
          if (waits) static_cast<void>(made.read());
          ops_.matmul(*device_, w.matrix, made.data(), k + apart, n_taken, y.data(), 40, nullptr,
                      false);
        });
        EXPECT_EQ(n, expected) << n_taken << " " << apart;
        return Rows{made.read(), y.read()};
      };
      EXPECT_EQ(run(false, n_rows, 0, 3), run(true, n_rows, 0, 4)) << k;
      EXPECT_EQ(run(false, n_rows - 1, 0, 4), run(true, n_rows - 1, 0, 4)) << k;
      EXPECT_EQ(run(false, n_rows, 2, 4), run(true, n_rows, 2, 4)) << k;
    }
  }
}

/// The results of a rotation and of the staging after it.
struct Staged {
  std::vector<float> heads, k, v;  // k, v: in the cache's type, bit by bit
  bool operator==(const Staged&) const = default;
};

TEST_P(CudaFused, rope_before_keys_and_values_are_staged) {
  constexpr int kHeads = 6, kKv = 2;
  const std::vector<std::int32_t> at = {5, 0, 3, 9, 9};
  const auto n_rows = static_cast<int>(at.size());
  DeviceMemory pos(*device_, at.size() * 4);
  pos.write(at.data());
  for (const DType dtype : kAllDTypes) {
    for (const auto& [head_dim, between] : {std::pair(2, 3), {10, 3}, {64, 3}, {64, 4}, {72, 0}}) {
      const int width = (kHeads + 2 * kKv) * head_dim + between;
      const DeviceFloats table(*device_, normal_values(std::size_t(10) * head_dim, 4));
      // Rows of both types fill whole words of 4 bytes.
      const std::size_t words =
          std::size_t(n_rows) * kKv * head_dim * std::size_t(bytes_of(dtype)) / 4;
      const auto run = [&](bool waits, int n_turned, std::int64_t expected) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * width, 5)),
            k(*device_, std::vector<float>(words)), v(*device_, std::vector<float>(words));
        const auto stage = [&](int first_head, const DeviceFloats& to) {
          if (waits) static_cast<void>(x.read());
          ops_.kv_stage(*device_, x.data() + first_head * head_dim, width, n_rows, kKv, head_dim,
                        dtype, to.data());
        };
        const std::int64_t n = launches(x, [&] {
          ops_.rope(*device_, x.data(), width, n_rows, n_turned, head_dim,
                    static_cast<const int*>(pos.data()), table.data());
          stage(kHeads, k);
          stage(kHeads + kKv, v);
        });
        EXPECT_EQ(n, expected) << n_turned;
        return Staged{x.read(), k.read(), v.read()};
      };
      EXPECT_EQ(run(false, kHeads + kKv, 1), run(true, kHeads + kKv, 3)) << head_dim;
      // Keys are not the last rotated heads.
      EXPECT_EQ(run(false, kHeads, 3), run(true, kHeads, 3)) << head_dim;
      EXPECT_EQ(run(false, kHeads + 2 * kKv, 3), run(true, kHeads + 2 * kKv, 3)) << head_dim;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaFused,
                         ::testing::ValuesIn(cuda_devices_here()),
                         [](const auto& one) { return as_test_name(one.param); });

}  // namespace
}  // namespace kernels::test

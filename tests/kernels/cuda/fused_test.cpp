// Fused operations against the sequence of operations that they replace (kernels/unfused.h): the same bits, and fewer
// kernels wherever a fused kernel exists.
#include <functional>

#include "kernels/unfused.h"
#include "tests/kernels/attention_scene.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

constexpr int kOutputs = 40;

/// The results of an operation, and the number of its kernels.
struct Result {
  std::vector<std::vector<float>> values;
  std::int64_t n_kernels = 0;
};

class FusedOps : public ::testing::TestWithParam<std::string> {
 protected:
  OpenedCuda device_{GetParam(), emulation::Watch::Orders};
  const Ops& ops_ = device_->ops();

  /// Runs `work` and reads `results`.
  Result run(const std::vector<const DeviceFloats*>& results, const std::function<void()>& work) {
    static_cast<void>(results[0]->read());
    const std::int64_t before = device_->n_kernels();
    work();
    Result result;
    for (const DeviceFloats* one : results) result.values.push_back(one->read());
    result.n_kernels = device_->n_kernels() - before;
    return result;
  }
  DeviceFloats zeros(std::int64_t n) const {
    return {*device_, std::vector<float>(std::size_t(n))};
  }
  Projection to(const PackedOnDevice& w,
                const DeviceFloats& y,
                const DeviceFloats* bias,
                bool add) {
    return {w.matrix, bias ? bias->data() : nullptr, y.data(), kOutputs, add};
  }
  PackedOnDevice weights(int k, DType dtype) {
    return pack_on_device(*device_, normal_values(std::size_t(kOutputs) * k, 1), kOutputs, k,
                          dtype);
  }
  void expect_saves(const Result& fused, const Result& sequence, int n_kernels) {
    EXPECT_EQ(fused.values, sequence.values);
    EXPECT_EQ(fused.n_kernels, sequence.n_kernels - n_kernels);
  }
};

// More than 128 rows, and f32 weights, have no kernel that prepares the rows of the product.
int kernels_saved(DType dtype, int n_rows) {
  return dtype != DType::F32 && n_rows <= 128 ? 1 : 0;
}

TEST_P(FusedOps, rms_norm_matmul_equals_the_sequence) {
  for (const DType dtype : kAllDTypes) {
    for (const int k : {24, 64, 200, 203}) {
      const PackedOnDevice w = weights(k, dtype);
      const DeviceFloats norm(*device_, normal_values(k, 2)),
          bias(*device_, normal_values(kOutputs, 4));
      for (const int n_rows : {1, 8, 9, 40, 130}) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * k, 3));
        const auto normed_product = [&](bool fused) {
          const DeviceFloats normed = zeros(std::int64_t{n_rows} * k),
                             y = zeros(std::int64_t{n_rows} * kOutputs);
          return run({&normed, &y}, [&] {
            const auto op = fused ? ops_.rms_norm_matmul : unfused::rms_norm_matmul;
            op(*device_, x.data(), norm.data(), 1e-5f, normed.data(), n_rows,
               to(w, y, &bias, false));
          });
        };
        SCOPED_TRACE(std::to_string(n_rows) + " x " + std::to_string(k));
        expect_saves(normed_product(true), normed_product(false), kernels_saved(dtype, n_rows));
      }
    }
  }
}

TEST_P(FusedOps, glu_matmul_equals_the_sequence) {
  for (const DType dtype : kAllDTypes) {
    for (const int k : {24, 64, 200, 203}) {
      const PackedOnDevice w = weights(k, dtype);
      for (const int n_rows : {1, 8, 9, 40, 130}) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * 2 * k, 3, 4));
        const Gate gate = k == 64 ? Gate::Silu : Gate::GeluTanh;
        const auto gated_product = [&](bool fused) {
          const DeviceFloats gated = zeros(std::int64_t{n_rows} * k),
                             y(*device_, normal_values(std::size_t(n_rows) * kOutputs, 5));
          return run({&gated, &y}, [&] {
            const auto op = fused ? ops_.glu_matmul : unfused::glu_matmul;
            op(*device_, gate, x.data(), gated.data(), n_rows, to(w, y, nullptr, true));
          });
        };
        SCOPED_TRACE(std::to_string(n_rows) + " x " + std::to_string(k));
        expect_saves(gated_product(true), gated_product(false), kernels_saved(dtype, n_rows));
      }
    }
  }
}

TEST_P(FusedOps, attention_matmul_equals_the_sequence) {
  for (const DType dtype : kAllDTypes) {
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
      const PackedOnDevice w = weights(forward.width(), dtype);
      const auto attended_product = [&](bool fused) {
        const DeviceFloats attended = zeros(std::int64_t{n_rows} * forward.width()),
                           y(*device_, normal_values(std::size_t(n_rows) * kOutputs, 5));
        return run({&attended, &y}, [&] {
          forward.attend_and_multiply(q, attended.data(), to(w, y, nullptr, true), fused);
        });
      };
      SCOPED_TRACE(forward.width());
      expect_saves(attended_product(true), attended_product(false), kernels_saved(dtype, n_rows));
    }
  }
}

TEST_P(FusedOps, rope_kv_stage_equals_the_sequence) {
  constexpr int kHeads = 6, kKv = 2;
  const std::vector<std::int32_t> at = {5, 0, 3, 9, 9};
  const auto n_rows = static_cast<int>(at.size());
  DeviceMemory pos(*device_, at.size() * 4);
  pos.write(at.data());
  for (const DType dtype : kAllDTypes) {
    for (const auto& [head_dim, between] : {std::pair(2, 3), {10, 3}, {64, 3}, {64, 4}, {72, 0}}) {
      const int width = (kHeads + 2 * kKv) * head_dim + between;
      const DeviceFloats table(*device_, normal_values(std::size_t(10) * head_dim, 4));
      // Counts the staged rows in words of 4 bytes; rows of both types fill whole words.
      const std::int64_t words = std::int64_t{n_rows} * kKv * head_dim * bytes_of(dtype) / 4;
      const auto staged = [&](bool fused) {
        const DeviceFloats x(*device_, normal_values(std::size_t(n_rows) * width, 5)),
            k = zeros(words), v = zeros(words);
        return run({&x, &k, &v}, [&] {
          const auto op = fused ? ops_.rope_kv_stage : unfused::rope_kv_stage;
          op(*device_, x.data(), width, n_rows, kHeads, kKv, head_dim,
             static_cast<const int*>(pos.data()), table.data(), dtype, k.data(), v.data());
        });
      };
      SCOPED_TRACE(head_dim);
      expect_saves(staged(true), staged(false), 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         FusedOps,
                         ::testing::ValuesIn(cuda_devices_here()),
                         [](const auto& one) { return as_test_name(one.param); });

}  // namespace
}  // namespace kernels::test

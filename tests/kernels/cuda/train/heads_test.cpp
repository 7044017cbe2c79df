// Training kernels of the draft heads on CUDA devices, against double loops, at odd sizes.
#include <cmath>

#include "tests/kernels/cuda/train/kit.h"

namespace kernels::test {
namespace {

class CudaHeadsTraining : public ::testing::TestWithParam<TrainCase> {
 protected:
  DType type() const { return GetParam().type; }
};
INSTANTIATE_TEST_SUITE_P(Types,
                         CudaHeadsTraining,
                         ::testing::ValuesIn(train_cases()),
                         name_of_train_case);

double logistic_of(double x) {
  return 1 / (1 + std::exp(-x));
}

TEST_P(CudaHeadsTraining, silu_with_bias_and_residual_equals_a_double_loop) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  for (const auto& [n_rows, dim] : {std::pair{1, 1}, std::pair{3, 37}, std::pair{2, 300}}) {
    const auto n = std::size_t(n_rows) * std::size_t(dim);
    auto z = normal_values(n, 1, 4);
    z[0] = 200;
    if (dim > 1) z[1] = -200;
    const auto bias = normal_values(std::size_t(dim), 2);
    const auto x = kept_values(n, 3, type());
    const DeviceFloats biases(*device, bias);
    const TypedArray added(*device, type(), x);
    for (int form = 0; form < 4; form++) {
      const bool with_bias = form & 1, with_x = form & 2;
      const DeviceFloats there(*device, z);
      const TypedArray y(*device, type(), std::vector<float>(n, -1));
      kernels.silu(*device, type(), there.data(), with_bias ? biases.data() : nullptr,
                   with_x ? added.data() : nullptr, y.data(), n_rows, dim);
      const auto sums = there.read(), found = y.read();
      for (std::size_t at = 0; at < n; at++) {
        const float own = with_bias ? z[at] + bias[at % std::size_t(dim)] : z[at];
        ASSERT_EQ(sums[at], own) << "the sums that the backward reads";
        const double silu = own * logistic_of(own), exact = silu + (with_x ? x[at] : 0);
        ASSERT_NEAR(found[at], exact,
                    3e-6 * (std::fabs(silu) + std::fabs(exact)) + 1e-30 + rounding(exact, type()))
            << own;
      }
    }
  }
}

TEST_P(CudaHeadsTraining, silus_backward_is_its_derivative) {
  const OpenedCuda device(GetParam().device);
  for (const int n : {1, 300, 777}) {
    auto z = normal_values(std::size_t(n), 4, 4);
    z[0] = 200;
    if (n > 1) z[1] = -200;
    const auto dy = kept_values(std::size_t(n), 5, type());
    const DeviceFloats there(*device, z);
    const TypedArray in(*device, type(), dy), out(*device, type(), std::vector<float>(dy.size()));
    train_kernels(*device).silu_backward(*device, type(), there.data(), in.data(), out.data(), n);
    const auto found = out.read();
    for (std::size_t at = 0; at < found.size(); at++) {
      const double s = logistic_of(z[at]), exact = dy[at] * s * (1 + z[at] * (1 - s));
      // 1 + z (1 - s) cancels nothing larger than 1 + |z|.
      ASSERT_NEAR(
          found[at], exact,
          3e-6 * std::fabs(dy[at] * s * (1 + std::fabs(z[at]))) + 1e-30 + rounding(exact, type()))
          << z[at];
    }
  }
}

TEST_P(CudaHeadsTraining, elements_are_added_and_rounded_once) {
  const OpenedCuda device(GetParam().device);
  const auto x = kept_values(301, 6, type()), before = kept_values(301, 7, type());
  const TypedArray in(*device, type(), x), y(*device, type(), before);
  train_kernels(*device).add(*device, type(), in.data(), y.data(), 301);
  const auto found = y.read();
  for (std::size_t at = 0; at < x.size(); at++)
    ASSERT_EQ(found[at], stored(before[at] + x[at], type()));
}

TEST_P(CudaHeadsTraining, column_sums_accumulate_over_any_number_of_rows) {
  const OpenedCuda device(GetParam().device);
  for (const auto& [n_rows, width] : {std::pair{1, 5}, std::pair{300, 33}, std::pair{129, 70}}) {
    const auto x = kept_values(std::size_t(n_rows * width), 8, type());
    const auto before = normal_values(std::size_t(width), 9);
    const TypedArray in(*device, type(), x);
    const DeviceFloats sums(*device, before);
    train_kernels(*device).column_sums(*device, type(), in.data(), sums.data(), n_rows, width);
    const auto found = sums.read();
    for (int i = 0; i < width; i++) {
      double exact = before[std::size_t(i)], size = 1 + std::fabs(exact);
      for (int row = 0; row < n_rows; row++) {
        exact += x[std::size_t(row * width + i)];
        size += std::fabs(x[std::size_t(row * width + i)]);
      }
      // One rounding per term, of sums that never exceed the sum of the terms' magnitudes.
      ASSERT_NEAR(found[std::size_t(i)], exact, (n_rows + 1) * 0x1p-24 * size) << i;
    }
  }
}

TEST_P(CudaHeadsTraining, rows_are_copied_by_index_lists) {
  const OpenedCuda device(GetParam().device);
  const TrainKernels& kernels = train_kernels(*device);
  const std::vector<std::int32_t> from_row = {4, -1, 0, 4, 2}, to_row = {6, 1, 0, 3, 5};
  const DeviceList<std::int32_t> froms(*device, from_row), tos(*device, to_row);
  for (const DType to_type : {DType::F32, DType::BF16}) {
    for (const int dim : {1, 37, 300}) {
      for (int lists = 0; lists < 4; lists++) {
        const bool from_list = lists & 1, to_list = lists & 2;
        const int stride = dim + (lists == 3 ? 0 : 5);
        const auto from = kept_values(std::size_t(5 * dim), 10, type());
        const auto before = kept_values(std::size_t(7 * stride), 11, to_type);
        const TypedArray in(*device, type(), from), out(*device, to_type, before);
        kernels.copy_rows(*device, type(), in.data(), from_list ? froms.data() : nullptr, to_type,
                          out.data(), to_list ? tos.data() : nullptr, stride, 5, dim);
        auto expected = before;
        for (int r = 0; r < 5; r++) {
          const int source = from_list ? from_row[std::size_t(r)] : r;
          const int place = to_list ? to_row[std::size_t(r)] : r;
          for (int i = 0; i < dim; i++)
            expected[std::size_t(place * stride + i)] =
                source < 0 ? 0 : stored(from[std::size_t(source * dim + i)], to_type);
        }
        ASSERT_EQ(out.read(), expected) << dim << ", lists " << lists;
      }
    }
  }
  EXPECT_THROW(
      kernels.copy_rows(*device, type(), nullptr, nullptr, type(), nullptr, nullptr, 3, 1, 4),
      ContractError);
}

TEST_P(CudaHeadsTraining, feature_loss_and_gradient_equal_double_loops) {
  const OpenedCuda device(GetParam().device);
  const std::vector<std::int32_t> row = {3, 0, 5}, wanted_row = {1, 1, 2};
  const DeviceList<std::int32_t> rows(*device, row), goals(*device, wanted_row);
  for (const int dim : {1, 37, 300}) {
    for (const int more : {0, 3}) {
      const int stride = dim + more, n = 6 * dim;
      const auto f = normal_values(std::size_t(n), 12);
      const auto before = normal_values(std::size_t(n), 13);
      const auto wanted = kept_values(std::size_t(3 * dim), 14, DType::BF16);
      // The last row has no padding after its elements.
      const auto d_read = kept_values(std::size_t(2 * stride + dim), 15, type());
      const DeviceFloats features(*device, f), dx(*device, before),
          squares(*device, std::vector<float>(3, -1));
      const TypedArray states(*device, DType::BF16, wanted), d(*device, type(), d_read);
      train_kernels(*device).feature_loss(*device, type(), features.data(), rows.data(),
                                          states.data(), goals.data(), d.data(), stride, 0.3f,
                                          dx.data(), squares.data(), 3, dim);
      const auto found = dx.read(), sums = squares.read();
      auto untouched = before;
      for (int r = 0; r < 3; r++) {
        double exact = 0;
        for (int i = 0; i < dim; i++) {
          const auto at = std::size_t(row[std::size_t(r)] * dim + i);
          const double off =
              double(f[at]) - wanted[std::size_t(wanted_row[std::size_t(r)] * dim + i)];
          exact += off * off;
          const double gradient = 2 * double(0.3f) * off + d_read[std::size_t(r * stride + i)];
          ASSERT_NEAR(found[at], gradient, 1e-6 * (1 + std::fabs(off) + std::fabs(gradient)));
          untouched[at] = found[at];
        }
        ASSERT_NEAR(sums[std::size_t(r)], exact, 1e-5 * (1 + exact));
      }
      ASSERT_EQ(found, untouched) << "rows outside the lists are unchanged";
    }
  }
}

class CudaTargetRanks : public OnEachCuda {};

TEST_P(CudaTargetRanks, count_preferred_tokens_with_ties_by_lower_id) {
  const OpenedCuda device(GetParam());
  for (const auto& [vocab, n_valid] : {std::pair{1, 1}, std::pair{47, 40}, std::pair{300, 300}}) {
    const int n_rows = 6;
    auto logits = normal_values(std::size_t(n_rows * vocab), 16);
    for (float& z : logits) z = std::round(z * 4) / 4;  // so that many are equal
    std::vector<std::int32_t> target = {0, n_valid - 1, n_valid / 2, -1, 0, n_valid / 3};
    const DeviceFloats in(*device, logits);
    const DeviceList<std::int32_t> targets(*device, target);
    const DeviceMemory ranks(*device, 4 * n_rows);
    train_kernels(*device).target_ranks(*device, in.data(), targets.data(),
                                        static_cast<std::int32_t*>(ranks.data()), n_rows, vocab,
                                        n_valid);
    std::vector<std::int32_t> found(n_rows);
    ranks.read(found.data());
    for (int row = 0; row < n_rows; row++) {
      const float* z = &logits[std::size_t(row) * std::size_t(vocab)];
      const int own = target[std::size_t(row)];
      int expected = own < 0 ? 0 : 1;
      for (int i = 0; own >= 0 && i < n_valid; i++)
        expected += z[i] > z[own] || (z[i] == z[own] && i < own);
      EXPECT_EQ(found[std::size_t(row)], expected) << vocab << ", row " << row;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaTargetRanks,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

}  // namespace
}  // namespace kernels::test

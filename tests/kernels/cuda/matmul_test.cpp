// Packing, products and embedding look-up on CUDA devices: against double loops, and bit for bit
// for any number of rows, any number of outputs and appended zeros.
#include <numeric>
#include <tuple>

#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

struct MatrixCase {
  std::string device;
  DType dtype;
  int n, k;
};

std::string name_of_case(const ::testing::TestParamInfo<MatrixCase>& info) {
  const MatrixCase& c = info.param;
  return as_test_name(c.device + "_" + name_of(c.dtype) + "_" + std::to_string(c.n) + "x" +
                      std::to_string(c.k));
}

std::vector<MatrixCase> cases_of(const std::vector<std::pair<int, int>>& shapes) {
  std::vector<MatrixCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType dtype : kAllDTypes)
      for (const auto& [n, k] : shapes) all.push_back({device, dtype, n, k});
  return all;
}

/// The type to which a product rounds activations.
float rounded_input(float x, DType weights) {
  return weights == DType::F32 ? x : stored(x, weights);
}

std::vector<float> multiplied(Device& device,
                              const PackedOnDevice& w,
                              const std::vector<float>& x,
                              int n_rows,
                              const float* bias = nullptr,
                              const std::vector<float>* before = nullptr) {
  const DeviceFloats there(device, x);
  const std::size_t n = std::size_t(n_rows) * w.matrix.n;
  const DeviceFloats y(device, before ? *before : std::vector<float>(n, NAN));
  device.ops().matmul(device, w.matrix, there.data(), w.matrix.k, n_rows, y.data(), w.matrix.n,
                      bias, before != nullptr);
  return y.read();
}

class CudaMatmul : public ::testing::TestWithParam<MatrixCase> {};

TEST_P(CudaMatmul, equals_a_double_loop) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name);
  const auto w = normal_values(std::size_t(n) * k, 1);
  const auto bias = normal_values(n, 3);
  const DeviceFloats bias_there(*device, bias);
  const PackedOnDevice packed = pack_on_device(*device, w, n, k, dtype);
  for (const int n_rows : {1, 7, 9, 17, 34, 70, 131}) {
    const auto x = normal_values(std::size_t(n_rows) * k, 2);
    const auto before = normal_values(std::size_t(n_rows) * n, 4);
    const bool more = n_rows % 3 == 1;
    const auto y = multiplied(*device, packed, x, n_rows, more ? bias_there.data() : nullptr,
                              more ? &before : nullptr);
    SquaredError error;
    for (std::size_t at = 0; at < y.size(); at++) {
      const std::size_t r = at / n, i = at % n;
      double sum = 0, size = 0;
      const auto add = [&](double term) { sum += term, size += std::fabs(term); };
      for (int j = 0; j < k; j++)
        add(double(rounded_input(x[r * k + j], dtype)) * stored(w[i * k + j], dtype));
      if (more) add(bias[i]), add(before[at]);
      // k products and sums in f32, each within 2^-24; a tensor core may truncate instead of
      // rounding, hence one bit more.
      ASSERT_NEAR(y[at], sum, (k + 8) * 0x1p-23 * size + 1e-30)
          << n_rows << " rows, row " << r << " output " << i;
      error.add(y[at], sum);
    }
    ASSERT_LT(error.normalized(), kMostSquaredError) << n_rows << " rows";
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes,
    CudaMatmul,
    ::testing::ValuesIn(
        cases_of({{1, 1}, {16, 32}, {17, 33}, {40, 7}, {64, 64}, {96, 65}, {131, 190}, {70, 384}})),
    name_of_case);

class CudaMatmulRows : public ::testing::TestWithParam<MatrixCase> {};

TEST_P(CudaMatmulRows, are_batch_invariant) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  constexpr int kRows = 140;
  const PackedOnDevice packed =
      pack_on_device(*device, normal_values(std::size_t(n) * k, 5), n, k, dtype);
  const auto x = normal_values(std::size_t(kRows) * k, 6);
  const auto row = [&](int r) {
    return std::vector<float>(&x[std::size_t(r) * k], &x[std::size_t(r) * k] + k);
  };
  const auto all = multiplied(*device, packed, x, kRows);
  for (const int r : {0, 1, 7, 8, 63, 64, 127, 128, 139}) {
    const auto alone = multiplied(*device, packed, row(r), 1);
    ASSERT_EQ(0, std::memcmp(alone.data(), &all[std::size_t(r) * n], n * 4)) << "row " << r;
  }
  for (const int n_rows : {2, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129}) {
    std::vector<int> order(kRows);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(n_rows));
    std::vector<float> some;
    for (int i = 0; i < n_rows; i++) {
      const auto own = row(order[i]);
      some.insert(some.end(), own.begin(), own.end());
    }
    const auto y = multiplied(*device, packed, some, n_rows);
    for (int i = 0; i < n_rows; i++)
      ASSERT_EQ(0, std::memcmp(&y[std::size_t(i) * n], &all[std::size_t(order[i]) * n], n * 4))
          << n_rows << " rows, row " << order[i];
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaMatmulRows,
                         ::testing::ValuesIn(cases_of({{83, 70}, {70, 330}})),
                         name_of_case);

class CudaMatmulZeros : public ::testing::TestWithParam<MatrixCase> {};

TEST_P(CudaMatmulZeros, appended_to_k_change_no_bit) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name);
  const int n_rows = 5, wide = 4 * k;
  const auto w = normal_values(std::size_t(n) * k, 7),
             x = normal_values(std::size_t(n_rows) * k, 8);
  const auto widened = [&](const std::vector<float>& rows) {
    std::vector<float> longer(rows.size() * 4);
    for (std::size_t i = 0; i < rows.size(); i++) longer[i / k * wide + i % k] = rows[i];
    return longer;
  };
  const auto y = multiplied(*device, pack_on_device(*device, w, n, k, dtype), x, n_rows);
  const auto wide_y =
      multiplied(*device, pack_on_device(*device, widened(w), n, wide, dtype), widened(x), n_rows);
  for (std::size_t i = 0; i < y.size(); i++) ASSERT_EQ(bits_of(y[i]), bits_of(wide_y[i])) << i;
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaMatmulZeros,
                         ::testing::ValuesIn(cases_of({{50, 24}, {50, 33}, {50, 192}})),
                         name_of_case);

class CudaMatmulWide : public ::testing::TestWithParam<MatrixCase> {};

// A wide matrix has whole sums in each block; a narrow one splits them over four blocks (split-K).
TEST_P(CudaMatmulWide, equals_a_narrow_product_bit_for_bit) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  const int narrow = 40, n_rows = 3;
  const auto w = normal_values(std::size_t(n) * k, 9),
             x = normal_values(std::size_t(n_rows) * k, 10);
  const std::vector<float> part(w.begin(), w.begin() + narrow * k);
  const auto y = multiplied(*device, pack_on_device(*device, w, n, k, dtype), x, n_rows);
  const auto few = multiplied(*device, pack_on_device(*device, part, narrow, k, dtype), x, n_rows);
  for (int r = 0; r < n_rows; r++)
    ASSERT_EQ(0, std::memcmp(&y[std::size_t(r) * n], &few[std::size_t(r) * narrow], narrow * 4));
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaMatmulWide,
                         ::testing::ValuesIn(cases_of({{16390, 70}, {16384, 300}})),
                         name_of_case);

std::vector<MatrixCase> halves_of(const std::vector<std::pair<int, int>>& shapes) {
  std::vector<MatrixCase> some = cases_of(shapes);
  std::erase_if(some, [](const MatrixCase& one) { return one.dtype == DType::F32; });
  return some;
}

/// The double loop's sums of products and of their magnitudes, for rows of x and outputs [first,
/// n).
struct Sums {
  std::vector<double> sum, size;
  Sums(const MatrixCase& of, const std::vector<float>& w, const std::vector<float>& x, int first) {
    const int n_outputs = of.n - first, n_rows = static_cast<int>(x.size()) / of.k;
    std::vector<float> weights(w.size()), rows(x.size());
    for (std::size_t i = 0; i < w.size(); i++) weights[i] = stored(w[i], of.dtype);
    for (std::size_t i = 0; i < x.size(); i++) rows[i] = rounded_input(x[i], of.dtype);
    sum.resize(std::size_t(n_rows) * n_outputs), size = sum;
    for (std::size_t at = 0; at < sum.size(); at++) {
      const float* row = &rows[at / n_outputs * of.k];
      const float* own = &weights[(first + at % n_outputs) * of.k];
      for (int j = 0; j < of.k; j++) {
        const double term = double(row[j]) * own[j];
        sum[at] += term, size[at] += std::fabs(term);
      }
    }
  }
};

// A block has 64 outputs, or 128 for many rows. The sizes are around 12,288 outputs, from which on
// a block computes whole sums.
class CudaMatmulBlocks : public ::testing::TestWithParam<MatrixCase> {};

TEST_P(CudaMatmulBlocks, equal_a_double_loop_and_a_row_alone) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  const bool is_wide = n > 1000;
  const auto w = normal_values(std::size_t(n) * k, 13);
  const auto x = normal_values(std::size_t(128) * k, 14);
  const PackedOnDevice packed = pack_on_device(*device, w, n, k, dtype);
  const int first = is_wide ? n - 200 : 0;  // checks only the last blocks of a wide matrix
  const Sums expected(GetParam(), w, x, first);
  std::vector<std::vector<float>> alone;
  for (const int r : {0, 77, 127}) {
    const std::vector<float> row(&x[std::size_t(r) * k], &x[std::size_t(r) * k] + k);
    alone.push_back(multiplied(*device, packed, row, 1));
  }
  const std::vector<int> wide_rows = {17, 128},
                         narrow_rows = {1, 8, 9, 16, 17, 24, 32, 33, 64, 65, 127, 128};
  for (const int n_rows : is_wide ? wide_rows : narrow_rows) {
    const std::vector<float> some(x.begin(), x.begin() + std::ptrdiff_t(n_rows) * k);
    const auto y = multiplied(*device, packed, some, n_rows);
    for (int r = 0; r < n_rows; r++) {
      for (int i = first; i < n; i++) {
        const std::size_t at = std::size_t(r) * (n - first) + (i - first);
        // As for all products: k products, each within 2^-24, and a tensor core may truncate.
        ASSERT_NEAR(y[std::size_t(r) * n + i], expected.sum[at],
                    (k + 8) * 0x1p-23 * expected.size[at] + 1e-30)
            << n_rows << " rows, row " << r << " output " << i;
      }
    }
    for (const auto& [r, own] : {std::pair(0, 0), {77, 1}, {127, 2}}) {
      if (r >= n_rows) continue;
      ASSERT_EQ(0, std::memcmp(&y[std::size_t(r) * n], alone[std::size_t(own)].data(), n * 4))
          << n_rows << " rows, row " << r;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Outputs,
    CudaMatmulBlocks,
    ::testing::ValuesIn(halves_of(
        {{64, 70}, {192, 130}, {193, 70}, {320, 70}, {12224, 40}, {12288, 40}, {12352, 70}})),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Chunks,
                         CudaMatmulBlocks,
                         ::testing::ValuesIn(halves_of(
                             {{70, 256}, {70, 257}, {70, 321}, {70, 448}, {70, 500}, {70, 576}})),
                         name_of_case);

/// Multiplies on an emulated device with n_multiprocessors.
std::vector<float> multiplied_on(int n_multiprocessors,
                                 const std::vector<float>& w,
                                 const std::vector<float>& x,
                                 const MatrixCase& of,
                                 const std::vector<float>& before) {
  emulation::multiprocessors(n_multiprocessors);
  const OpenedCuda device(of.device);
  emulation::multiprocessors(132);
  const PackedOnDevice packed = pack_on_device(*device, w, of.n, of.k, of.dtype);
  return multiplied(*device, packed, x, static_cast<int>(x.size()) / of.k, nullptr, &before);
}

// With fewer multiprocessors than tiles a block computes several tiles; with more, blocks split k.
TEST(CudaMatmulTasks, give_the_same_bits_for_any_number_of_multiprocessors) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const MatrixCase of = {"cuda:emulated", dtype, 700, 330};
    const auto w = normal_values(std::size_t(of.n) * of.k, 15);
    for (const int n_rows : {17, 40, 100}) {
      const auto x = normal_values(std::size_t(n_rows) * of.k, 16);
      const auto before = normal_values(std::size_t(n_rows) * of.n, 17);
      const auto expected = multiplied_on(132, w, x, of, before);
      for (const int n : {1, 2, 5, 9, 11, 23})
        ASSERT_EQ(0, std::memcmp(multiplied_on(n, w, x, of, before).data(), expected.data(),
                                 4 * expected.size()))
            << n_rows << " rows, " << n << " multiprocessors";
    }
  }
}

struct PackCase {
  std::string device;
  DType from, to;
};
std::vector<PackCase> pack_cases() {
  std::vector<PackCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType from : kAllDTypes)
      for (const DType to : kAllDTypes) all.push_back({device, from, to});
  return all;
}
std::string name_of_types(const ::testing::TestParamInfo<PackCase>& info) {
  const PackCase& c = info.param;
  return as_test_name(c.device + "_" + name_of(c.from) + "_to_" + name_of(c.to));
}
class CudaPack : public ::testing::TestWithParam<PackCase> {};

TEST_P(CudaPack, every_source_type_packs_to_its_rounded_value) {
  const auto& [name, from, to] = GetParam();
  const OpenedCuda device(name);
  const Ops& ops = device->ops();
  for (const auto& [n, k] :
       {std::pair{21, 35}, {64, 64}, {150, 3}, {70, 200}, {20, 321}, {9, 570}}) {
    const auto w = normal_values(n * k, 11);
    std::vector<std::uint16_t> narrow;
    for (const float x : w)
      narrow.push_back(from == DType::F16 ? f16_from_f32(x) : bf16_from_f32(x));
    const DeviceMemory packed(*device, std::size_t(ops.packed_bytes(to, n, k)));
    const void* raw = from == DType::F32 ? static_cast<const void*>(w.data()) : narrow.data();
    ops.pack(*device, raw, from, n, k, to, packed.data());
    std::vector<std::int32_t> ids(n);
    std::iota(ids.rbegin(), ids.rend(), 0);
    const DeviceFloats y(*device, std::vector<float>(n * k));
    ops.embed(*device, {packed.data(), n, k, to}, ids.data(), n, y.data());
    const auto read = y.read();
    for (int i = 0; i < n * k; i++)
      ASSERT_EQ(read[i], stored(stored(w[ids[i / k] * k + i % k], from), to)) << n << " x " << k;
  }
}
INSTANTIATE_TEST_SUITE_P(Types, CudaPack, ::testing::ValuesIn(pack_cases()), name_of_types);

class CudaEmbed : public OnEachCuda {};

TEST_P(CudaEmbed, an_id_outside_the_table_is_a_contract_error) {
  const OpenedCuda device(GetParam());
  const PackedOnDevice table = pack_on_device(*device, normal_values(8 * 4, 12), 8, 4, DType::F32);
  const DeviceFloats y(*device, std::vector<float>(4));
  for (const std::int32_t id : {-1, 8})
    EXPECT_ANY_THROW(device->ops().embed(*device, table.matrix, &id, 1, y.data()));
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaEmbed,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

}  // namespace
}  // namespace kernels::test

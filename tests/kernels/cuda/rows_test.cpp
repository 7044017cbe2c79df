// RMS norm, rope, SwiGLU, rounding and the cache on CUDA devices: against double loops, and bit for
// bit for any number of rows.
#include <numeric>

#include "tests/kernels/commit_scene.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

struct SizeCase {
  std::string device;
  int size;
};
std::vector<SizeCase> sizes(const std::vector<int>& all_sizes) {
  std::vector<SizeCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const int size : all_sizes) all.push_back({device, size});
  return all;
}
std::string name_of_size(const ::testing::TestParamInfo<SizeCase>& info) {
  return as_test_name(info.param.device + "_" + std::to_string(info.param.size));
}

std::vector<float> normed(Device& device,
                          const std::vector<float>& x,
                          const std::vector<float>& w,
                          float eps,
                          bool in_place) {
  const int dim = int(w.size()), n_rows = int(x.size()) / dim;
  const DeviceFloats from(device, x), weights(device, w), to(device, std::vector<float>(x.size()));
  float* y = in_place ? from.data() : to.data();
  device.ops().rms_norm(device, from.data(), weights.data(), y, n_rows, dim, eps);
  return in_place ? from.read() : to.read();
}

class CudaRmsNorm : public ::testing::TestWithParam<SizeCase> {};

TEST_P(CudaRmsNorm, equals_a_double_loop_in_place_or_not) {
  const auto& [name, dim] = GetParam();
  const OpenedCuda device(name);
  const auto w = normal_values(dim, 1);
  for (const int n_rows : {1, 2, 19}) {
    const auto x = normal_values(std::size_t(n_rows) * dim, 2);
    const auto y = normed(*device, x, w, 1e-5f, false);
    ASSERT_EQ(y, normed(*device, x, w, 1e-5f, true));
    for (int r = 0; r < n_rows; r++) {
      const float* row = &x[std::size_t(r) * dim];
      const double squares = std::inner_product(row, row + dim, row, 0.0);
      for (int i = 0; i < dim; i++) {
        const double exact = row[i] / std::sqrt(squares / dim + 1e-5f) * w[i];
        // The sum has at most dim / 256 + 13 roundings, whose error the root halves; six more
        // follow.
        ASSERT_NEAR(y[std::size_t(r) * dim + i], exact,
                    (dim / 256 + 20) * 0x1p-24 * std::fabs(exact) + 1e-30);
      }
      const auto alone = normed(*device, {row, row + dim}, w, 1e-5f, false);
      ASSERT_EQ(0, std::memcmp(alone.data(), &y[std::size_t(r) * dim], 4 * dim)) << "row " << r;
    }
  }
}

TEST_P(CudaRmsNorm, padding_with_zeros_to_four_times_doubles_the_value) {
  const auto& [name, dim] = GetParam();
  const OpenedCuda device(name);
  const auto x = normal_values(dim, 3), w = normal_values(dim, 4);
  std::vector<float> wide_x(4 * dim), wide_w(4 * dim);
  std::copy(x.begin(), x.end(), wide_x.begin());
  std::transform(w.begin(), w.end(), wide_w.begin(), [](float v) { return v / 2; });
  const auto y = normed(*device, x, w, 1e-5f, false);
  const auto wide = normed(*device, wide_x, wide_w, 1e-5f / 4, false);
  for (int i = 0; i < 4 * dim; i++)
    ASSERT_EQ(bits_of(wide[i]), bits_of(i < dim ? y[i] : 0.0f)) << i;
}
INSTANTIATE_TEST_SUITE_P(Dims,
                         CudaRmsNorm,
                         ::testing::ValuesIn(sizes({1, 5, 63, 192, 256, 300, 1100, 4096, 4100,
                                                    8205})),
                         name_of_size);

class CudaFours : public OnEachCuda {};

// Reads rows at addresses that allow vector loads and at others.
TEST_P(CudaFours, a_row_has_the_same_bits_at_any_position) {
  const OpenedCuda device(GetParam());
  const Ops& ops = device->ops();
  constexpr int kDim = 4096;
  const auto x = normal_values(2 * kDim, 1), w = normal_values(kDim, 2);
  const auto made_at = [&](int offset, bool is_norm) {
    std::vector<float> values(offset);
    values.insert(values.end(), x.begin(), x.end());
    const DeviceFloats from(*device, values), weights(*device, w),
        to(*device, std::vector<float>(2 * kDim));
    if (is_norm)
      ops.rms_norm(*device, from.data() + offset, weights.data(), to.data(), 2, kDim, 1e-5f);
    else
      ops.glu(*device, Gate::Silu, from.data() + offset, to.data(), 1, kDim);
    return to.read();
  };
  for (const bool is_norm : {true, false})
    for (const int offset : {1, 2, 4}) EXPECT_EQ(made_at(offset, is_norm), made_at(0, is_norm));
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaFours,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

class CudaRope : public ::testing::TestWithParam<SizeCase> {};

TEST_P(CudaRope, rotates_the_halves_of_each_head) {
  const auto& [name, head_dim] = GetParam();
  const OpenedCuda device(name);
  const int n_heads = 3, n_rows = 21, width = n_heads * head_dim;
  const auto turns = normal_values(50 * head_dim, 5);
  for (const int between : {7, 8}) {
    const int stride = width + between;
    const auto before = normal_values((n_rows - 1) * stride + width, 6);
    std::vector<int> pos(n_rows);
    for (int r = 0; r < n_rows; r++) pos[r] = r * 13 % 50;
    DeviceMemory there(*device, pos.size() * sizeof(int));
    there.write(pos.data());
    const DeviceFloats table(*device, turns), x(*device, before);
    device->ops().rope(*device, x.data(), stride, n_rows, n_heads, head_dim,
                       static_cast<const int*>(there.data()), table.data());
    const auto after = x.read();
    for (int at = 0; at < int(after.size()); at++) {
      const int r = at / stride, i = at % stride, d = i % head_dim, half = head_dim / 2;
      if (i >= width) {
        ASSERT_EQ(after[at], before[at]) << "between rows";
        continue;
      }
      const double c = turns[pos[r] * head_dim + d % half * 2],
                   s = turns[pos[r] * head_dim + d % half * 2 + 1];
      const double low = before[at - d + d % half], high = before[at - d + d % half + half];
      const double exact = d < half ? low * c - high * s : high * c + low * s;
      ASSERT_NEAR(after[at], exact, 15 * 0x1p-24 * (std::fabs(low) + std::fabs(high)));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(HeadDims,
                         CudaRope,
                         ::testing::ValuesIn(sizes({2, 6, 64, 80})),
                         name_of_size);

class CudaGather : public OnEachCuda {};

TEST_P(CudaGather, single_elements_are_copied_with_one_wait) {
  const OpenedCuda device(GetParam());
  const auto values = normal_values(3000, 9);
  const DeviceFloats there(*device, values);
  for (const int n : {0, 1, 300}) {
    std::vector<std::int64_t> at(n);
    for (int i = 0; i < n; i++) at[i] = (i * 977 + 2999) % 3000;
    std::vector<float> found(n);
    const std::int64_t before = emulation::calls_of("cudaStreamSynchronize");
    device->ops().gather(*device, there.data(), at.data(), n, found.data());
    if (is_emulated(*device)) {
      EXPECT_EQ(emulation::calls_of("cudaStreamSynchronize") - before, n > 0 ? 1 : 0);
    }
    for (int i = 0; i < n; i++) ASSERT_EQ(found[i], values[at[i]]);
  }
}
INSTANTIATE_TEST_SUITE_P(Devices,
                         CudaGather,
                         ::testing::ValuesIn(cuda_devices_here()),
                         name_of_device);

class CudaGlu : public ::testing::TestWithParam<SizeCase> {};

double exact_gate(Gate kind, double x) {
  if (kind == Gate::Silu) return x / (1 + std::exp(-x));
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST_P(CudaGlu, equals_a_double_loop_up_to_large_values) {
  const auto& [name, hidden] = GetParam();
  const OpenedCuda device(name);
  for (const Gate kind : {Gate::Silu, Gate::GeluTanh}) {
    for (const int n_rows : {1, 5}) {
      auto values = normal_values(std::size_t(n_rows) * 2 * hidden, 7, 8);
      values[0] = -200;
      if (hidden > 1) values[1] = 200;
      const DeviceFloats x(*device, values), to(*device, std::vector<float>(n_rows * hidden));
      device->ops().glu(*device, kind, x.data(), to.data(), n_rows, hidden);
      const auto y = to.read();
      for (int at = 0; at < n_rows * hidden; at++) {
        const float* gate = &values[at / hidden * 2 * hidden + at % hidden];
        const double exact = exact_gate(kind, gate[0]) * gate[hidden];
        // exp is accurate to 2^-22 relative; the cut at exp(88) leaves 1e-36. GELU's exponent, at most 88, is
        // rounded five times: 5 * 88 * 2^-24 = 2^-15.
        const double rounding = kind == Gate::Silu ? 0x1p-20 : 0x1p-15;
        ASSERT_NEAR(y[at], exact, rounding * std::fabs(exact) + 1e-33) << gate[0];
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Widths,
                         CudaGlu,
                         ::testing::ValuesIn(sizes({1, 17, 64, 513})),
                         name_of_size);

struct TypeCase {
  std::string device;
  DType dtype;
};
std::vector<TypeCase> types() {
  std::vector<TypeCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType dtype : kAllDTypes) all.push_back({device, dtype});
  return all;
}
std::string name_of_type(const ::testing::TestParamInfo<TypeCase>& info) {
  return as_test_name(info.param.device + "_" + name_of(info.param.dtype));
}

class CudaCache : public ::testing::TestWithParam<TypeCase> {};

TEST_P(CudaCache, staged_rows_are_rounded_to_the_nearest_value) {
  const auto& [name, dtype] = GetParam();
  const OpenedCuda device(name);
  std::vector<float> x = normal_values(500, 10);
  std::mt19937 random(11);
  for (int i = 0; i < 500; i++) {
    const float value = std::bit_cast<float>(std::uint32_t(random()));
    if (std::isfinite(value)) x.push_back(value);
    x.push_back(std::ldexp(float(random() % 4096) / 4096, -int(random() % 30)));
  }
  for (const float special : {0.f, -0.f, INFINITY, -INFINITY, 65504.f, 65519.9f, 65520.f, 0x1p-24f,
                              0x1p-25f, 0x1.8p-25f, 1.00390625f, 1.01171875f})
    x.push_back(special);
  x.push_back(NAN);
  const int n = int(x.size());
  const DeviceFloats there(*device, x);
  const DeviceMemory staged(*device, std::size_t(n) * bytes_of(dtype));
  device->ops().kv_stage(*device, there.data(), n, 1, 1, n, dtype, staged.data());
  std::vector<float> wide(n);
  std::vector<std::uint16_t> narrow(n);
  staged.read(dtype == DType::F32 ? static_cast<void*>(wide.data()) : narrow.data());
  for (int i = 0; i < n; i++) {
    const float kept = dtype == DType::F32   ? wide[i]
                       : dtype == DType::F16 ? f32_from_f16(narrow[i])
                                             : f32_from_bf16(narrow[i]);
    if (std::isnan(x[i]))
      ASSERT_TRUE(std::isnan(kept));
    else
      ASSERT_EQ(bits_of(kept), bits_of(stored(x[i], dtype))) << x[i];
  }
}

TEST_P(CudaCache, a_copied_page_reads_the_same) {
  const auto& [name, dtype] = GetParam();
  const OpenedCuda device(name);
  const Ops& ops = device->ops();
  const int n_kv = 3, dim = 10, width = n_kv * dim;
  const std::int64_t bytes = ops.page_bytes(dtype, n_kv, dim) + 64;
  const DeviceMemory k(*device, std::size_t(3 * bytes)), v(*device, std::size_t(3 * bytes));
  const KvLayer layer{k.data(), v.data(), bytes, n_kv, dim, dtype};
  std::vector<float> rows = normal_values(kPageSize * width, 17);
  for (float& x : rows) x = stored(x, dtype);
  const DeviceFloats there(*device, rows);
  const DeviceMemory staged(*device, rows.size() * bytes_of(dtype));
  ops.kv_stage(*device, there.data(), width, kPageSize, n_kv, dim, dtype, staged.data());
  std::vector<int> src(kPageSize), slot(kPageSize);
  const std::vector<int> page(kPageSize, 2);
  std::iota(src.rbegin(), src.rend(), 0);
  std::iota(slot.rbegin(), slot.rend(), 0);
  const StagedLayer both{staged.data(), staged.data()};
  ops.kv_commit(*device, &layer, &both, 1, src.data(), page.data(), slot.data(), kPageSize);
  ops.kv_copy_page(*device, layer, 2, 0);
  std::vector<float> read_k(rows.size()), read_v(rows.size());
  const int first = 0;
  ops.kv_read(*device, layer, &first, kPageSize, read_k.data(), read_v.data());
  EXPECT_EQ(read_k, rows);
  EXPECT_EQ(read_v, rows);
}

// 121 layers are one more than one argument can contain; one case has a head with more values than threads.
TEST_P(CudaCache, rows_of_all_layers_are_committed_in_one_launch) {
  const auto& [name, dtype] = GetParam();
  const OpenedCuda device(name);
  struct Case {
    CommitShape shape;
    int n_launches;
  };
  for (const Case& c : {Case{{1, 3, 10, 64}, 1}, Case{{3, 2, 33, 70}, 1}, Case{{2, 1, 130, 1}, 1},
                        Case{{120, 1, 2, 3}, 1}, Case{{121, 1, 2, 3}, 2}}) {
    SCOPED_TRACE(std::to_string(c.shape.n_layers) + " layers, rows " + std::to_string(c.shape.n));
    Commit commit(*device, c.shape, dtype);
    const std::int64_t before = device->n_kernels();
    commit.ask();
    char none = 0;
    device->ops().download(*device, &none, nullptr, 0);  // waits
    EXPECT_EQ(device->n_kernels() - before, c.n_launches);
    commit.expect_done();
  }
  EXPECT_EQ(emulation::fault_text(), "");
}

TEST_P(CudaCache, commits_check_layer_shapes_and_page_slots) {
  const auto& [name, dtype] = GetParam();
  const OpenedCuda device(name);
  const KvLayer layer{nullptr, nullptr, 1024, 1, 8, dtype};
  KvLayer layers[] = {layer, layer};
  layers[1].head_dim = 4;
  const StagedLayer staged[2] = {};
  const int zero = 0, behind = kPageSize;
  const auto refused = [&](int n_layers, int slot) {
    try {
      device->ops().kv_commit(*device, layers, staged, n_layers, &zero, &zero, &slot, 1);
    } catch (const ContractError&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused(2, zero));
  EXPECT_TRUE(refused(1, behind));
}
INSTANTIATE_TEST_SUITE_P(Types, CudaCache, ::testing::ValuesIn(types()), name_of_type);

class CudaHeadNorm : public ::testing::TestWithParam<SizeCase> {};

TEST_P(CudaHeadNorm, is_the_norm_of_each_head) {
  const auto& [name, head_dim] = GetParam();
  const OpenedCuda device(name);
  const Ops& ops = device->ops();
  const int n_heads = 3, n_kv_heads = 2, n_rows = 9, n = n_heads + n_kv_heads;
  for (const int between : {5, 8}) {
    const int stride = n * head_dim + between;
    const auto before = normal_values(n_rows * stride, 13), norms = normal_values(2 * head_dim, 12);
    const DeviceFloats w(*device, norms), x(*device, before);
    ops.head_norm(*device, x.data(), stride, n_rows, n_heads, n_kv_heads, head_dim, w.data(),
                  1e-6f);
    const auto after = x.read();
    for (int r = 0; r < n_rows; r++) {
      std::vector<float> queries(before.begin() + r * stride,
                                 before.begin() + r * stride + n * head_dim);
      const DeviceFloats q(*device, queries), y(*device, queries);
      ops.rms_norm(*device, q.data(), w.data(), y.data(), n_heads, head_dim, 1e-6f);
      ops.rms_norm(*device, q.data() + n_heads * head_dim, w.data() + head_dim,
                   y.data() + n_heads * head_dim, n_kv_heads, head_dim, 1e-6f);
      const auto expected = y.read();
      for (int i = 0; i < n * head_dim; i++) ASSERT_EQ(after[r * stride + i], expected[i]) << i;
      for (int i = n * head_dim; i < stride; i++)
        ASSERT_EQ(after[r * stride + i], before[r * stride + i]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(HeadDims,
                         CudaHeadNorm,
                         ::testing::ValuesIn(sizes({2, 36, 64, 130})),
                         name_of_size);

class CudaScaleAndCap : public ::testing::TestWithParam<SizeCase> {};

TEST_P(CudaScaleAndCap, equals_a_double_loop) {
  const auto& [name, n] = GetParam();
  const OpenedCuda device(name);
  for (const float cap : {0.0f, 0.3f, 30.0f}) {
    const auto before = normal_values(n, 14, 20);
    const DeviceFloats x(*device, before);
    device->ops().scale_and_cap(*device, x.data(), n, 1.7f, cap);
    const auto after = x.read();
    for (int i = 0; i < n; i++) {
      const double scaled = double(1.7f) * before[i];
      const double exact = cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
      // About eight roundings.
      ASSERT_NEAR(after[i], exact, 0x1p-21 * std::fabs(exact)) << before[i] << " cap " << cap;
    }
  }
}
TEST_P(CudaScaleAndCap, keeps_nan_and_limits_infinity) {
  const OpenedCuda device(GetParam().device);
  const DeviceFloats x(*device, {NAN, INFINITY, -INFINITY, 0, 1e-30f});
  device->ops().scale_and_cap(*device, x.data(), 5, 1, 30);
  const auto after = x.read();
  EXPECT_TRUE(std::isnan(after[0]));
  EXPECT_EQ(after[1], 30);
  EXPECT_EQ(after[2], -30);
  EXPECT_EQ(after[3], 0);
  EXPECT_NEAR(after[4], 1e-30f, 1e-36f);
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         CudaScaleAndCap,
                         ::testing::ValuesIn(sizes({1, 70, 9000})),
                         name_of_size);

}  // namespace
}  // namespace kernels::test

// Products of whole prompt blocks on CUDA devices (CUDA_PROMPTS=cublas): against double loops, bit for
// bit beside any other blocks, and the note without cuBLAS. In the emulation this project's own tile
// products replace cuBLAS.
#include "kernels/cuda/cuda_device.h"
//
#include <gmock/gmock.h>

#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"
#include "tests/support/in_environment.h"

namespace kernels::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kBlock = 256;

struct BlockCase {
  std::string device;
  DType dtype;
  int n, k;
};
std::string name_of_case(const ::testing::TestParamInfo<BlockCase>& info) {
  const BlockCase& c = info.param;
  return as_test_name(c.device + "_" + name_of(c.dtype) + "_" + std::to_string(c.n) + "x" +
                      std::to_string(c.k));
}
std::vector<BlockCase> cases_of(const std::vector<std::pair<int, int>>& shapes) {
  std::vector<BlockCase> all;
  for (const std::string& device : cuda_devices_here())
    for (const DType dtype : kAllDTypes)
      for (const auto& [n, k] : shapes) all.push_back({device, dtype, n, k});
  return all;
}

class CudaBlocks : public ::testing::TestWithParam<BlockCase> {
 protected:
  const InEnvironment by_cublas_{"CUDA_PROMPTS", "cublas"};
};

/// @param before  values of y to add to; null: none
std::vector<float> multiplied(Device& device,
                              const PackedMatrix& w,
                              const std::vector<float>& x,
                              const float* bias = nullptr,
                              const std::vector<float>* before = nullptr) {
  const auto n_rows = static_cast<int>(x.size()) / w.k;
  const DeviceFloats there(device, x);
  const std::size_t n = std::size_t(n_rows) * w.n;
  const DeviceFloats y(device, before ? *before : std::vector<float>(n, NAN));
  device.ops().matmul_blocks(device, w, there.data(), w.k, n_rows, y.data(), w.n, bias,
                             before != nullptr);
  return y.read();
}

TEST_P(CudaBlocks, equal_a_double_loop) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name);
  ASSERT_EQ(device->prompt_block(), kBlock);
  const auto w = normal_values(std::size_t(n) * k, 1),
             x = normal_values(std::size_t(kBlock) * k, 2);
  const auto bias = normal_values(n, 3), before = normal_values(std::size_t(kBlock) * n, 4);
  const DeviceFloats bias_there(*device, bias);
  const PackedOnDevice packed = pack_on_device(*device, w, n, k, dtype);
  for (const bool biased : {false, true}) {
    for (const bool added : {false, true}) {
      const auto y = multiplied(*device, packed.matrix, x, biased ? bias_there.data() : nullptr,
                                added ? &before : nullptr);
      for (std::size_t at = 0; at < y.size(); at++) {
        const std::size_t r = at / n, i = at % n;
        double sum = 0, size = 0;
        const auto add = [&](double term) { sum += term, size += std::fabs(term); };
        for (int j = 0; j < k; j++) {
          const float taken = dtype == DType::F32 ? x[r * k + j] : stored(x[r * k + j], dtype);
          add(double(taken) * stored(w[i * k + j], dtype));
        }
        if (biased) add(bias[i]);
        if (added) add(before[at]);
        // As for matmul: k products and sums in f32, and one bit for a tensor core.
        ASSERT_NEAR(y[at], sum, (k + 8) * 0x1p-23 * size + 1e-30) << "row " << r << " output " << i;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaBlocks,
                         ::testing::ValuesIn(cases_of({{1, 1}, {40, 7}, {64, 64}, {131, 70}})),
                         name_of_case);

class CudaBlockBits : public CudaBlocks {};

// The unpacked weights fit the slab as a whole, or only in parts.
TEST_P(CudaBlockBits, do_not_depend_on_the_other_blocks) {
  const auto& [name, dtype, n, k] = GetParam();
  const OpenedCuda device(name, emulation::Watch::Once);
  const PackedOnDevice packed =
      pack_on_device(*device, normal_values(std::size_t(n) * k, 5), n, k, dtype);
  constexpr int kBlocks = 3;
  ASSERT_EQ(device->prompt_block(), kBlock);
  for (const bool in_slabs : {false, true}) {
    if (in_slabs && !is_emulated(*device)) continue;
    if (in_slabs) cuda_emulated::cuda_of(*device).limit_slab(1);
    const std::size_t n_in = std::size_t(kBlock) * k, n_out = std::size_t(kBlock) * n;
    const auto x = normal_values(kBlocks * n_in, 6);
    const auto all = multiplied(*device, packed.matrix, x);
    for (std::size_t block = 0; block < kBlocks; block++) {
      const auto alone =
          multiplied(*device, packed.matrix, {&x[block * n_in], &x[block * n_in] + n_in});
      ASSERT_EQ(0, std::memcmp(alone.data(), &all[block * n_out], n_out * 4)) << "block " << block;
    }
    // A row does not depend on the other rows of its block.
    std::vector<float> other(n_in, 3);
    std::copy(&x[70 * k], &x[70 * k] + k, &other[70 * k]);
    const auto beside = multiplied(*device, packed.matrix, other);
    ASSERT_EQ(0, std::memcmp(&beside[70 * n], &all[70 * n], n * 4));
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes,
                         CudaBlockBits,
                         ::testing::ValuesIn(cases_of({{150, 70}, {64, 130}})),
                         name_of_case);

TEST(CudaPrompts, are_prefilled_by_step_kernels_by_default) {
  emulation::forget_faults();
  for (const char* words : {"", "own"}) {
    const InEnvironment asked("CUDA_PROMPTS", words);
    const auto device = open_cuda("cuda:emulated");
    EXPECT_EQ(device->prompt_block(), 0);
    EXPECT_EQ(device->prompt_products(), "");
  }
  {
    const InEnvironment asked("CUDA_PROMPTS", "cublas");
    const auto device = open_cuda("cuda:emulated");
    EXPECT_EQ(device->prompt_block(), kBlock);
    EXPECT_EQ(device->prompt_products(), "own products");
    EXPECT_TRUE(take_notes_of(*device).empty());
  }
  const InEnvironment asked("CUDA_PROMPTS", "blas");
  EXPECT_THAT(refusal([] { open_cuda("cuda:emulated"); }, ErrorCode::Usage),
              HasSubstr("CUDA_PROMPTS: found \"blas\", expected own or cublas"));
}

TEST(CudaPrompts, without_cublas_a_note_is_printed_once) {
  const InEnvironment asked("CUDA_PROMPTS", "cublas"), named("DECOSCOPE_CUBLAS", "/none.so");
  const auto device = open_cuda("cuda:emulated");
  EXPECT_EQ(device->prompt_block(), 0);
  EXPECT_EQ(device->prompt_block(), 0);
  const auto notes = take_notes_of(*device);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(
      notes.front(),
      AllOf(HasSubstr("cuda:emulated: CUDA_PROMPTS=cublas: cuBLAS is not available: "),
            HasSubstr("/none.so"), HasSubstr("prompts are computed by the same kernels as steps"),
            HasSubstr("DECOSCOPE_CUBLAS"), Not(HasSubstr("\n"))));
}

TEST(CudaPrompts, partial_blocks_are_refused) {
  const InEnvironment asked("CUDA_PROMPTS", "cublas");
  const auto device = open_cuda("cuda:emulated");
  const PackedOnDevice w = pack_on_device(*device, normal_values(8, 1), 2, 4, DType::BF16);
  EXPECT_THROW(multiplied(*device, w.matrix, normal_values(255 * 4, 2)), ContractError);
}

// A library call flushes the kernels queued before it: one list per layer.
TEST(CudaPrompts, kernels_before_a_library_call_make_no_graph) {
  const auto device = open_cuda("cuda:emulated");
  auto& cuda = cuda_emulated::cuda_of(*device);
  const DeviceFloats x(*device, normal_values(3 * 24, 2)), w(*device, normal_values(24, 1));
  const auto graphs = [] { return emulation::calls_of("cudaGraphInstantiateWithFlags"); };
  const std::int64_t before = graphs();
  for (const bool once : {true, false}) {
    for (int layer = 0; layer < 3; layer++) {
      for (int i = 0; i < 6; i++)
        device->ops().rms_norm(*device, x.data(), w.data(), x.data(), 3, 24, 1e-5f);
      if (once) cuda.skip_graph_cache();
      static_cast<void>(cuda.stream_for("a library's"));
    }
    EXPECT_EQ(graphs() - before, once ? 0 : 1);
  }
}

/// Two products of a block, as in one layer of a prompt.
std::vector<float> small_prompt() {
  const auto device = open_cuda("cuda:emulated");
  const PackedOnDevice w = pack_on_device(*device, normal_values(40 * 24, 1), 40, 24, DType::BF16);
  const DeviceFloats bias(*device, normal_values(40, 3));
  const auto x = normal_values(std::size_t(kBlock) * 24, 2);
  static_cast<void>(multiplied(*device, w.matrix, x));
  return multiplied(*device, w.matrix, x, bias.data());
}

TEST(CudaPrompts, each_failing_call_is_named_and_a_retry_works) {
  const InEnvironment asked("CUDA_PROMPTS", "cublas");
  for (const bool for_memory : {false, true}) {
    emulation::forget_faults();
    take_notes_of_closed();
    const std::int64_t in_use = emulation::memory_in_use();
    emulation::fail_call(0);
    const std::vector<float> expected = small_prompt();
    const std::int64_t n_calls = emulation::fail_call(0);
    ASSERT_GT(n_calls, 30);
    for (std::int64_t i = 1; i <= n_calls; i++) {
      if (for_memory)
        emulation::fail_call_for_memory(i);
      else
        emulation::fail_call(i);
      std::string message;
      try {
        EXPECT_EQ(small_prompt(), expected);
      } catch (const Error& error) {
        message = error.what();
        EXPECT_TRUE(error.code() == ErrorCode::Device || error.code() == ErrorCode::Resources);
      }
      const std::string failed = emulation::failed_call();
      SCOPED_TRACE("call " + std::to_string(i) + ", " + failed + ": " + message);
      emulation::fail_call(0);
      emulation::forget_faults();
      EXPECT_EQ(emulation::memory_in_use(), in_use);
      for (const std::string& note : take_notes_of_closed()) message += note;
      if (failed == "cudaMalloc") continue;  // retried
      EXPECT_THAT(message, HasSubstr("cuda:emulated: "));
      EXPECT_THAT(message, HasSubstr(for_memory ? "cudaErrorMemoryAllocation" : "cudaError"));
    }
    EXPECT_EQ(small_prompt(), expected);
  }
}

}  // namespace
}  // namespace kernels::test

// CUDA devices as devices: opened by name, refused in one line, out of memory, and every call that
// can fail made to fail once.
#include <gmock/gmock.h>

#include "kernels/cuda/side.h"
#include "kernels/error.h"
#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const std::function<void()>& work, ErrorCode code) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(CudaDevices, the_emulated_one_is_here_and_says_what_it_is) {
  const auto all = list_cuda();
  ASSERT_GE(all.size(), 2u) << "a GPU, or why there is none, and the emulated one";
  EXPECT_EQ(all.front().name, "cuda:0");
  EXPECT_TRUE(all.front().available || !all.front().reason.empty());
  EXPECT_EQ(all.back().name, "cuda:emulated");
  EXPECT_TRUE(all.back().available);
  EXPECT_EQ(open_cuda("cuda:emulated")->name(), "cuda:emulated");
}

TEST(CudaDevices, those_that_are_not_here_are_refused_in_one_line) {
  for (const char* name : {"cuda:99", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999"}) {
    const std::string message = refusal([&] { open_cuda(name); }, ErrorCode::Device);
    EXPECT_THAT(message, AllOf(HasSubstr(std::string("device ") + name),
                               HasSubstr("decoscope devices"), Not(HasSubstr("\n"))));
  }
}

TEST(CudaDevices, CU01_a_driver_that_is_missing_or_too_old_is_named_with_both_versions) {
  EXPECT_EQ(driver_words(0, 12040),
            "no driver of NVIDIA's was found; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(11080, 12040),
            "the driver is too old, for CUDA 11.8; this program needs one for CUDA 12.4");
  EXPECT_EQ(driver_words(12040, 12040), "");
  EXPECT_EQ(driver_words(13010, 12040), "");
}

TEST(CudaDevices, out_of_memory_says_how_much_was_asked_for_and_is_free) {
  const OpenedCuda device("cuda:emulated");
  emulation::limit_memory(emulation::memory_in_use() + 50'000'000);
  const std::int64_t before = emulation::memory_in_use();
  const std::string message =
      refusal([&] { DeviceBuffer(*device, 80'000'000); }, ErrorCode::Resources);
  EXPECT_THAT(message,
              AllOf(HasSubstr("cuda:emulated: 81 MB were asked for"), HasSubstr("are free")));
  EXPECT_EQ(emulation::memory_in_use(), before);
  { const DeviceBuffer fits(*device, 40'000'000); }
  EXPECT_EQ(emulation::memory_in_use(), before) << "what fits is had, and given back";
  emulation::limit_memory(std::int64_t{4} << 30);
}

/// Something of everything: memory, weights, a product, a choice.
int small_job() {
  const auto device = open_cuda("cuda:emulated");
  const PackedThere w = pack_there(*device, normal_values(40 * 24, 1), 40, 24, DType::BF16);
  const DeviceFloats x(*device, normal_values(3 * 24, 2)), y(*device, std::vector<float>(3 * 40));
  device->ops().matmul(*device, w.matrix, x.data(), 24, 3, y.data(), 40, nullptr, false);
  const std::vector<PickRow> rows(3);
  std::vector<Picked> picked(3);
  device->ops().pick(*device, y.data(), 40, 3, 40, 40, rows.data(), picked.data());
  return picked[0].id * 10000 + picked[1].id * 100 + picked[2].id;
}

TEST(CudaDevices, every_call_that_fails_is_named_and_leaves_nothing_behind) {
  emulation::forget_faults();
  const std::int64_t in_use = emulation::memory_in_use();
  emulation::fail_call(0);
  const int expected = small_job();
  const std::int64_t n_calls = emulation::fail_call(0);
  ASSERT_GT(n_calls, 20);
  int n_named = 0;
  for (std::int64_t n = 1; n <= n_calls; n++) {
    emulation::fail_call(n);
    std::string message;
    try {
      EXPECT_EQ(small_job(), expected);
    } catch (const Error& e) {
      message = e.what();
    }
    const std::string failed = emulation::failed_call();
    emulation::fail_call(0);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed);
    // What only gives something back may fail without a word.
    const bool gives_back = failed == "cudaFree" || failed == "cudaFreeHost" ||
                            failed == "cudaStreamDestroy" || failed == "cudaEventDestroy";
    EXPECT_EQ(message.empty(), gives_back) << message;
    if (!gives_back) {
      EXPECT_THAT(message, HasSubstr("cuda:emulated: "));
      const bool by_name = failed == "cudaLaunchKernel" || failed == "cudaMalloc";
      EXPECT_THAT(message, HasSubstr(by_name ? "" : failed));
      n_named++;
    }
    EXPECT_EQ(emulation::memory_in_use(), in_use);
    EXPECT_EQ(small_job(), expected) << "the next attempt succeeds";
  }
  EXPECT_GT(n_named, 15);
}

TEST(CudaDevices, after_a_fault_every_call_says_what_it_was) {
  const auto device = open_cuda("cuda:emulated");
  emulation::forget_faults();
  const DeviceFloats w(*device, std::vector<float>(8, 1)), y(*device, std::vector<float>(16));
  const DeviceFloats few(*device, std::vector<float>(8));  // of 16 that are read
  device->ops().rms_norm(*device, few.data(), w.data(), y.data(), 2, 8, 1e-5f);
  float first = 0;
  const auto download = [&] { device->ops().download(*device, &first, y.data(), 4); };
  const std::string message = refusal(download, ErrorCode::Device);
  EXPECT_THAT(message, AllOf(HasSubstr("cudaErrorIllegalAddress"), HasSubstr("kernel rms_norm"),
                             HasSubstr("launched since the last wait"), HasSubstr("--device cpu")));
  EXPECT_EQ(refusal(download, ErrorCode::Device), message);
  EXPECT_EQ(refusal([&] { DeviceBuffer(*device, 4); }, ErrorCode::Device), message);
  emulation::forget_faults();
}

}  // namespace
}  // namespace kernels::test

// Kernels with invalid accesses on every available CUDA device. Each runs in a separate process,
// because it destroys a GPU's context.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/kernels/cuda/cuda_kit.h"

namespace kernels::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNothingRefused = 100, kEndedLate = 101;  // not used by ErrorCode

/// Normalises a row at a given offset, waits, and exits with the error's code, or with kEndedLate
/// if the device took more than 5 s from the fault to its end.
[[noreturn]] void norm_and_end(const std::string& name,
                               const std::function<std::intptr_t(std::intptr_t)>& row_of) {
  int code = kNothingRefused;
  auto failed = Clock::now();
  {
    const auto device = open_cuda(name);
    const DeviceFloats x(*device, std::vector<float>(64, 1)), w(*device, std::vector<float>(8, 1)),
        y(*device, std::vector<float>(8));
    const std::intptr_t from = row_of(reinterpret_cast<std::intptr_t>(x.data()));
    try {
      device->ops().rms_norm(*device, reinterpret_cast<const float*>(from), w.data(), y.data(), 1,
                             8, 1e-5f);
      static_cast<void>(y.read());
    } catch (const Error& e) {
      code = static_cast<int>(e.code());
      std::fprintf(stderr, "%s\n", e.what());
    }
    failed = Clock::now();
  }
  if (Clock::now() - failed > std::chrono::seconds(5)) code = kEndedLate;
  std::_Exit(code);
}

class WreckedKernels : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static auto device_code() {
    return ::testing::ExitedWithCode(static_cast<int>(ErrorCode::Device));
  }
};

// CU08.
TEST_P(WreckedKernels, a_bad_address_is_named_and_the_device_closes_in_5_s) {
  EXPECT_EXIT(norm_and_end(GetParam(), [](auto) { return 0x10; }), device_code(),
              ::testing::HasSubstr("cudaErrorIllegalAddress"));
}

// Only for GPUs: the emulation accepts a single number at any address.
using WreckedGpuKernels = WreckedKernels;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WreckedGpuKernels);

// CU08.
TEST_P(WreckedGpuKernels, a_misaligned_address_is_named) {
  EXPECT_EXIT(norm_and_end(GetParam(), [](auto good) { return good + 2; }), device_code(),
              ::testing::HasSubstr("cudaErrorMisalignedAddress"));
}

TEST_P(WreckedKernels, a_correct_kernel_is_accepted) {
  EXPECT_EXIT(norm_and_end(GetParam(), [](auto good) { return good + 4; }),
              ::testing::ExitedWithCode(kNothingRefused), "^$");
}

std::vector<std::string> gpus_here() {
  std::vector<std::string> names = cuda_devices_here();
  std::erase(names, "cuda:emulated");
  return names;
}

const auto kNameOfDevice = [](const ::testing::TestParamInfo<std::string>& device) {
  return as_test_name(device.param);
};
INSTANTIATE_TEST_SUITE_P(Devices,
                         WreckedKernels,
                         ::testing::ValuesIn(cuda_devices_here()),
                         kNameOfDevice);
INSTANTIATE_TEST_SUITE_P(Devices,
                         WreckedGpuKernels,
                         ::testing::ValuesIn(gpus_here()),
                         kNameOfDevice);

}  // namespace
}  // namespace kernels::test

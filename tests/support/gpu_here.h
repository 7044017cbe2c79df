// Tests for CUDA devices run once per available device. One test in each program reports why there
// is no real GPU.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"
#include "kernels/device.h"

namespace kernels::test {

/// The names of the available CUDA devices.
inline std::vector<std::string> cuda_devices_here() {
  std::vector<std::string> names;
  for (const CudaDeviceInfo& info : list_cuda())
    if (info.available) names.push_back(info.name);
  return names;
}
/// The device's name as a test's name: "cuda_emulated". scripts/gpu_check.sh selects the tests of a GPU by it.
inline std::string name_of_device(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, ':', '_');
  return name;
}

/// Opens each real GPU. Without one the test is skipped with the reason that `decoscope devices`
/// prints, even under DECOSCOPE_TEST_NEEDS_ALL, because no script can install a GPU.
inline void expect_gpus_that_open() {
  int n_gpus = 0;
  std::string reasons;
  for (const CudaDeviceInfo& info : list_cuda()) {
    if (info.name == "cuda:emulated") continue;
    if (info.available) {
      EXPECT_EQ(open_cuda(info.name)->name(), info.name);
      n_gpus++;
    } else {
      EXPECT_NE(info.reason, "") << info.name;
      reasons += (reasons.empty() ? "" : "; ") + info.name + ": " + info.reason;
    }
  }
  if (n_gpus == 0) GTEST_SKIP() << reasons;
}

}  // namespace kernels::test

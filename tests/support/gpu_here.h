// Tests for CUDA devices run once per available device. One test in each program reports why there
// is no real GPU.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"
#include "kernels/device.h"

namespace kernels::test {

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

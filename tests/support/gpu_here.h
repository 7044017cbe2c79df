// Tests for CUDA devices are listed for those that are here. In place of a real GPU's, where there
// is none, one test of each program says so.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"
#include "kernels/device.h"

namespace kernels::test {

/// Opens each real GPU. Without one the test is skipped, for the reason that `decoscope devices`
/// tells; under DECOSCOPE_TEST_NEEDS_ALL too, for no script installs a GPU.
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

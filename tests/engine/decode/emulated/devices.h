// The tiny model on CUDA devices.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/support/decode/catalogue.h"

namespace engine::test {

inline constexpr const char* kEmulated = "cuda:emulated";

/// Returns the tiny model on a device. In bf16 the emulation also protects device memory from the
/// host. Each wait then costs system calls, so the other dtypes do without.
inline Loaded& on_device(const std::string& device, kernels::DType dtype) {
  static std::map<std::pair<std::string, kernels::DType>, std::unique_ptr<Loaded>> all;
  kernels::emulation::fence_host_off(dtype == kernels::DType::BF16);
  auto& one = all[{device, dtype}];
  if (!one)
    one = std::make_unique<Loaded>(Subject{Subject::Kind::Tiny, dtype}, 0, ModelScale{},
                                   kernels::open_cuda(device));
  return *one;
}

}  // namespace engine::test

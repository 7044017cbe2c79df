// The tiny model on CUDA devices, the emulated one among them.
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

/// The tiny model on a device. Of the emulated one the host may not touch the memory, in one type:
/// what the host reads does not depend on it, and each wait costs system calls.
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

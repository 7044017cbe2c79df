// Runs every CUDA kernel on every available CUDA device: the emulated one always, checked in three
// thread orders, and real GPUs if there are any.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "kernels/error.h"
#include "tests/kernels/kernel_test_support.h"
#include "tests/support/gpu_here.h"
#include "tests/support/refusal.h"

namespace kernels::test {

inline bool is_emulated(const Device& device) {
  return device.name() == "cuda:emulated";
}

/// A device for one test. The emulated one has every check enabled, or runs kernels once if other
/// tests of the suite run them in all orders.
class OpenedCuda {
 public:
  explicit OpenedCuda(const std::string& name, emulation::Watch watch = emulation::Watch::Orders) {
    emulation::forget_faults();
    emulation::check_kernels(watch);
    emulation::fence_host_off(true);
    device_ = open_cuda(name);
  }
  OpenedCuda(const OpenedCuda&) = delete;
  OpenedCuda& operator=(const OpenedCuda&) = delete;
  ~OpenedCuda() {
    device_.reset();
    emulation::fence_host_off(false);
    emulation::check_kernels(emulation::Watch::Once);
  }
  Device& operator*() const { return *device_; }
  Device* operator->() const { return device_.get(); }

 private:
  std::unique_ptr<Device> device_;
};

/// Weights packed on a device, from row-major f32.
struct PackedOnDevice {
  DeviceMemory memory;
  PackedMatrix matrix;
};
inline PackedOnDevice pack_on_device(
    Device& device, const std::vector<float>& w, int n, int k, DType dtype) {
  PackedOnDevice packed;
  packed.memory = DeviceMemory(device, std::size_t(device.ops().packed_bytes(dtype, n, k)));
  device.ops().pack(device, w.data(), DType::F32, n, k, dtype, packed.memory.data());
  packed.matrix = {packed.memory.data(), n, k, dtype};
  return packed;
}

/// The text as a valid test name: "cuda_emulated".
inline std::string as_test_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

/// Suites that run once per device, with name_of_device().
class OnEachCuda : public ::testing::TestWithParam<std::string> {};

}  // namespace kernels::test

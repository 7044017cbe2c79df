// Arrays of a pass in a GPU's memory: made row by row wide, and filled from the host.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/dtype.h"

namespace engine {

/// What arrays of one pass have alike.
struct GpuArrays {
  kernels::Device& device;
  kernels::DType type;  // of activations: F32 or BF16
  int rows;

  /// [rows, width] of f32, or of what else takes four bytes
  /// @param what  as of Ops::allocate
  kernels::DeviceBuffer f32(std::int64_t width, const char* what) const {
    return {device, 4 * width * rows, what};
  }
  /// [rows, width] of the type
  kernels::DeviceBuffer typed(std::int64_t width, const char* what) const {
    return {device, kernels::bytes_of(type) * width * rows, what};
  }
};

/// A list's values go up, to the memory's begin.
template <typename T>
void upload(kernels::Device& device, const kernels::DeviceBuffer& to, const T& values) {
  device.ops().upload(device, to.data(), values.data(),
                      static_cast<std::int64_t>(values.size() * sizeof(values[0])));
}

}  // namespace engine

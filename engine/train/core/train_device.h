// A device for training passes: its table of training operations and the type of activations.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/dtype.h"
#include "kernels/train_ops.h"

namespace engine {

/// A device with the operations that train on it. Borrows the device.
struct TrainDevice {
  kernels::Device& device;
  const kernels::TrainOps& ops;
  kernels::DType type;  // of activations: F32 or BF16

  /// The number of rows, rounded up to the multiple that matrix products need.
  int padded(int rows) const {
    return (rows + ops.row_multiple - 1) / ops.row_multiple * ops.row_multiple;
  }
  /// Allocates n values of four bytes each: f32, token ids or row numbers.
  /// @param what  purpose of the memory, as for Ops::allocate
  kernels::DeviceBuffer f32(std::int64_t n, const char* what) const {
    return {device, 4 * n, what};
  }
  /// Allocates n activations.
  kernels::DeviceBuffer typed(std::int64_t n, const char* what) const {
    return {device, kernels::bytes_of(type) * n, what};
  }
  /// Copies a list from the host to the beginning of the buffer.
  template <typename List>
  void upload(const kernels::DeviceBuffer& to, const List& values) const {
    device.ops().upload(device, to.data(), values.data(),
                        static_cast<std::int64_t>(values.size() * sizeof(values[0])));
  }
  /// Sets rows [first, last) of `width` activations each to zero.
  void clear_rows(const kernels::DeviceBuffer& x, int first, int last, int width) const {
    if (first >= last) return;
    const std::int64_t row_bytes = std::int64_t{kernels::bytes_of(type)} * width;
    ops.clear(device, static_cast<char*>(x.data()) + first * row_bytes, (last - first) * row_bytes);
  }
};

/// A list of rows or token ids in a device's memory.
inline const std::int32_t* ids(const kernels::DeviceBuffer& list) {
  return static_cast<const std::int32_t*>(list.data());
}

}  // namespace engine

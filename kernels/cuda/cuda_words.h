// Words of messages about a device.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

inline std::string megabytes(std::int64_t bytes) {
  return std::to_string(bytes / 1'000'000 + 1) + " MB";
}
/// "cudaErrorUnknown (unknown error)".
inline std::string told(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

}  // namespace kernels::DECOSCOPE_GPU

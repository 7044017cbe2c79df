// The entry points of the two builds of the CUDA sources: for GPUs (nvcc) and for the emulated device. cuda.cpp calls them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/monitor/nvml.h"
#include "kernels/device.h"
#include "kernels/train_ops.h"

namespace kernels {

/// Properties of a device.
struct GpuProperties {
  std::string title;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  GpuIdentity identity;      // empty for the emulated device
};

/// Entry points of one build.
struct CudaSide {
  /// Number of devices; `reason` says why it is 0.
  int (*count)(std::string& reason);
  GpuProperties (*properties)(int ordinal);      // @throws Error(Device)
  std::unique_ptr<Device> (*open)(int ordinal);  // @throws Error(Device or Resources)
  std::vector<std::string> (*take_notes)(Device& device);
  std::vector<std::string> (*take_notes_of_closed)();
  const TrainKernels& (*training)();
};

/// Why no GPU can be used: no driver, or a driver that is too old. Empty: the driver is new enough. Versions are CUDA's
/// numbers (12040 is 12.4).
/// @param driver   the latest CUDA that the driver supports; 0: no driver
/// @param runtime  the CUDA that this program was built with
std::string driver_words(int driver, int runtime);

/// Why a GPU of this compute capability cannot run the compiled kernels; empty: it can.
/// @param built  compiled capabilities, "80,90". A GPU runs code that was compiled for its own
///               major number and for a minor number that is not higher. A GPU that is newer than
///               all of them runs the PTX of the last one
std::string capability_words(int major, int minor, const std::string& built);

namespace cuda {
/// The build for GPUs.
const CudaSide& side();
}  // namespace cuda
namespace cuda_emulated {
/// The build for the emulated device.
const CudaSide& side();
}  // namespace cuda_emulated

}  // namespace kernels

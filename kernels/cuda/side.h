// What cuda.cpp asks of each side that a build has: GPUs, and the emulated one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/monitor/nvml.h"
#include "kernels/device.h"
#include "kernels/train_ops.h"

namespace kernels {

struct GpuProperties {
  std::string title;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  GpuIdentity identity;      // empty: emulated
};

struct CudaSide {
  /// How many devices there are; `reason` says why there are none.
  int (*count)(std::string& reason);
  GpuProperties (*properties)(int ordinal);      // @throws Error(Device)
  std::unique_ptr<Device> (*open)(int ordinal);  // @throws Error(Device or Resources)
  std::vector<std::string> (*take_notes)(Device& device);
  std::vector<std::string> (*take_notes_of_closed)();
  const TrainKernels& (*training)();
};

/// Why there is no GPU, by CUDA's numbers of versions (12040 is 12.4): no driver, or one too old.
/// Empty: the driver is new enough.
/// @param driver   the latest CUDA it knows; 0: there is none
/// @param runtime  the CUDA that this program was built with
std::string driver_words(int driver, int runtime);

/// Why a GPU runs none of the kernels that were built, by its compute capability; empty: it does.
/// @param built  capabilities that there is code for, "80,90": a GPU takes that of its own major
///               number and no later minor one, or any that is not older than the last, from PTX
std::string capability_words(int major, int minor, const std::string& built);

namespace cuda {
const CudaSide& side();
}
namespace cuda_emulated {
const CudaSide& side();
}

}  // namespace kernels

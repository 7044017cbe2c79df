// GPUs as devices, and the emulated device that runs the same kernels on the CPU for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/monitor/gpu_monitor.h"
#include "kernels/device.h"

namespace kernels {

/// A device whose name starts with "cuda:". If a kind of device is not available, one entry gives
/// the reason.
struct CudaDeviceInfo {
  std::string name;  // "cuda:0", "cuda:emulated"
  bool available = false;
  std::string reason;  // why it is not available
  std::int64_t memory_bytes = 0;
  std::string ops;  // its table and GPU: "cuda on NVIDIA H200"
};
/// All devices, GPUs first. Never throws: the failure of a driver becomes a reason.
std::vector<CudaDeviceInfo> list_cuda();

/// The available devices, the CPU first, each GPU with its title and memory:
/// "cpu, cuda:0 (NVIDIA A100-SXM4-40GB MIG 1g.5gb, 5.1 GB), cuda:emulated".
std::string device_words(const std::vector<CudaDeviceInfo>& devices);

/// Opens a device by its name, "cuda:N" or "cuda:emulated". Each device object has its own stream.
/// @throws Error(Device)  with the available devices, if the device is missing, this build has no code for it, or it fails
std::unique_ptr<Device> open_cuda(const std::string& name);

/// Returns the notes of closed devices that were not taken before. They also report memory that
/// could not be released.
std::vector<std::string> take_notes_of_closed();

/// Queries once the load of a device "cuda:N" of list_cuda(); gives the reason if the load is not
/// available.
GpuLoad load_of_cuda(const CudaDeviceInfo& device);

}  // namespace kernels

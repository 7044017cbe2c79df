// GPUs as devices, and the one that runs the same kernels on the CPU to prove them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/monitor/gpu_monitor.h"
#include "kernels/device.h"

namespace kernels {

/// A device whose name starts with "cuda:": those there are, and in place of each kind that is not
/// there one that says why.
struct CudaDeviceInfo {
  std::string name;  // "cuda:0", "cuda:emulated"
  bool available = false;
  std::string reason;  // why not
  std::int64_t memory_bytes = 0;
  std::string ops;  // the table it computes with: "cuda sm_90", "cuda emulated"
};
/// Real ones first. Never throws: a driver that refuses is a reason.
std::vector<CudaDeviceInfo> list_cuda();

/// Those that can be had, the CPU first, each GPU with what it is:
/// "cpu, cuda:0 (NVIDIA A100-SXM4-40GB MIG 1g.5gb, 5.1 GB), cuda:emulated".
std::string device_words(const std::vector<CudaDeviceInfo>& devices);

/// A device by its name, "cuda:N" or "cuda:emulated"; each call opens one with a stream of its own.
/// @throws Error(Device)  in one line with those there are, if there is none, this build has none,
///                        or it refuses
std::unique_ptr<Device> open_cuda(const std::string& name);

/// Notes of closed devices: those not taken before, and memory that could not be released.
std::vector<std::string> take_notes_of_closed();

/// How busy a "cuda:N" of `list_cuda` is, asked once; of one that is not there the reason.
GpuLoad load_of_cuda(const CudaDeviceInfo& device);

}  // namespace kernels

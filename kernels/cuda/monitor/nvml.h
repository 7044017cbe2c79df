// NVML, the library of NVIDIA's driver that reports the load of a GPU. It is loaded at run time and is not needed to build:
// this file declares the functions in use according to nvml.h of the CUDA Toolkit. A missing library is not an error.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace kernels {

/// nvmlUtilization_t, percent.
struct NvmlUtilization {
  unsigned gpu = 0;     // time in which a kernel ran
  unsigned memory = 0;  // time in which its memory was read or written
};
/// nvmlMemory_t, bytes.
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};

/// The functions in use; null: missing in the library. Results are nvmlReturn_t, a device is a pointer.
struct NvmlTable {
  int (*init)() = nullptr;                             // nvmlInit_v2
  int (*shutdown)() = nullptr;                         // nvmlShutdown
  const char* (*error_text)(int result) = nullptr;     // nvmlErrorString
  int (*by_uuid)(const char*, void** gpu) = nullptr;   // nvmlDeviceGetHandleByUUID
  int (*by_bus)(const char*, void** gpu) = nullptr;    // nvmlDeviceGetHandleByPciBusId_v2
  int (*busy)(void*, NvmlUtilization*) = nullptr;      // nvmlDeviceGetUtilizationRates
  int (*memory)(void*, NvmlMemory*) = nullptr;         // nvmlDeviceGetMemoryInfo
  int (*clock)(void*, int of, unsigned*) = nullptr;    // nvmlDeviceGetClockInfo, MHz
  int (*power)(void*, unsigned* milliwatt) = nullptr;  // nvmlDeviceGetPowerUsage
};

/// Identifies a GPU for NVML. CUDA's device numbers are no use for this, because
/// CUDA_VISIBLE_DEVICES changes them for CUDA only.
struct GpuIdentity {
  std::string uuid;    // "GPU-8a1f3c5e-...", as nvidia-smi -L prints it
  std::string bus_id;  // "00000000:3B:00.0"
};

/// The values of a sample.
enum class GpuValue { Busy, MemoryBusy, MemoryUsed, MemoryTotal, Clock, MemoryClock, Power };
inline constexpr std::size_t kGpuValues = 7;
/// Its name in events and documents: "gpu_clock_mhz".
const char* name_of(GpuValue value);

/// The result of one query: a number, or NVML's error code.
struct NvmlAnswer {
  double value = -1;
  int code = 0;
};
/// Results indexed by GpuValue, in percent, bytes, MHz and watts.
using NvmlAnswers = std::array<NvmlAnswer, kGpuValues>;

/// The loaded library. Any thread may call it.
class Nvml {
 public:
  /// Loads and initialises the library.
  /// @return  null if that fails; `reason` then says why in one line
  static std::unique_ptr<Nvml> open(std::string& reason,
                                    const std::string& library = "libnvidia-ml.so.1");
  /// Initialises functions that are already loaded, for tests.
  static std::unique_ptr<Nvml> open(const NvmlTable& table, std::string& reason);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// NVML's handle of a GPU, found by UUID or else by bus id. @return  null: `reason` says why
  void* find(const GpuIdentity& gpu, std::string& reason) const;
  /// Queries all values.
  NvmlAnswers ask(void* gpu) const;
  /// Text of an error code other than 0.
  std::string error_text(int code) const;

 private:
  using Library = std::unique_ptr<void, int (*)(void*)>;
  Nvml(const NvmlTable& table, Library library);

  Library library_;  // null if the caller gave the functions
  NvmlTable table_;
};

}  // namespace kernels

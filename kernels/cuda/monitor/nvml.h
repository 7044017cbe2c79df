// NVML, the library of NVIDIA's driver that tells how busy a GPU is. It is opened when it is wanted
// and nothing of it is needed to build: the few functions used are declared here, by its published
// interface (nvml.h of the CUDA Toolkit). Absent is a reason, not an error.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace kernels {

struct NvmlUtilization {  // nvmlUtilization_t, percent
  unsigned gpu = 0;       // time in which a kernel ran
  unsigned memory = 0;    // time in which its memory was read or written
};
struct NvmlMemory {  // nvmlMemory_t, bytes
  unsigned long long total = 0, free = 0, used = 0;
};

/// What is called; null: the library has it not. Results are nvmlReturn_t, a device is a pointer.
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

/// A GPU by what it is and not by its number: CUDA_VISIBLE_DEVICES renumbers CUDA's devices only.
struct GpuIdentity {
  std::string uuid;    // "GPU-8a1f3c5e-...", as nvidia-smi -L prints it
  std::string bus_id;  // "00000000:3B:00.0"
};

/// What is asked of a GPU.
enum class GpuValue { Busy, MemoryBusy, MemoryUsed, MemoryTotal, Clock, MemoryClock, Power };
inline constexpr std::size_t kGpuValues = 7;
/// As it is called in events and documents: "gpu_clock_mhz".
const char* name_of(GpuValue value);

/// One answer: a number, or the library's code that says why there is none.
struct NvmlAnswer {
  double value = -1;
  int code = 0;
};
/// Answers by GpuValue: percent, bytes, MHz, watts.
using NvmlAnswers = std::array<NvmlAnswer, kGpuValues>;

/// The library, ready for questions. Any thread may ask.
class Nvml {
 public:
  /// @return null, and the reason in one line, where it is not there or refuses
  static std::unique_ptr<Nvml> open(std::string& reason,
                                    const std::string& library = "libnvidia-ml.so.1");
  /// Over functions that are there already.
  static std::unique_ptr<Nvml> open(const NvmlTable& table, std::string& reason);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// NVML's own device: by UUID, and where that is not known to it by bus. @return null: `reason`
  void* find(const GpuIdentity& gpu, std::string& reason) const;
  NvmlAnswers ask(void* gpu) const;
  /// What a code other than 0 means.
  std::string told(int code) const;

 private:
  using Library = std::unique_ptr<void, int (*)(void*)>;
  Nvml(const NvmlTable& table, Library library);

  Library library_;  // null: the functions are somebody else's
  NvmlTable table_;
};

}  // namespace kernels

// A fake NVML with two GPUs: functions with the driver library's signatures and values chosen by
// tests.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/cuda/monitor/gpu_monitor.h"

namespace kernels::test {

struct FakeNvml {
  static constexpr int kNotSupported = 3, kNotFound = 6, kDriverNotLoaded = 9;
  static constexpr const char* kSecondUuid = "GPU-00000000-0000-0000-0000-000000000002";
  static constexpr const char* kSecondBus = "00000000:3B:00.0";

  static inline std::atomic<int> init_result{0}, power_result{0}, n_inits{0}, n_shutdowns{0};
  static inline std::atomic<unsigned> busy{0};  // load of the second GPU; the first reports 7 %

  static void reset() { init_result = 0, power_result = 0, n_inits = 0, n_shutdowns = 0, busy = 0; }

  static NvmlTable table() {
    NvmlTable table;
    table.init = [] {
      n_inits++;
      return init_result.load();
    };
    table.shutdown = [] {
      n_shutdowns++;
      return 0;
    };
    table.error_text = [](int code) {
      return code == kNotSupported      ? "Not Supported"
             : code == kDriverNotLoaded ? "Driver Not Loaded"
                                        : "Not Found";
    };
    table.by_uuid = [](const char* uuid, void** gpu) { return found(uuid, kSecondUuid, gpu); };
    table.by_bus = [](const char* bus, void** gpu) { return found(bus, kSecondBus, gpu); };
    table.busy = [](void* gpu, NvmlUtilization* out) {
      *out = {.gpu = gpu == &gpus[1] ? busy.load() : 7, .memory = 31};
      return 0;
    };
    table.memory = [](void*, NvmlMemory* out) {
      *out = {.total = 150'000'000'000, .free = 100'000'000'000, .used = 50'000'000'000};
      return 0;
    };
    table.clock = [](void*, int of, unsigned* mhz) {
      *mhz = of == 1 ? 1980 : 2619;
      return 0;
    };
    table.power = [](void*, unsigned* milliwatt) {
      *milliwatt = 412'500;
      return power_result.load();
    };
    return table;
  }

  /// A source for the second GPU.
  static GpuSource source(const GpuIdentity& gpu = {.uuid = kSecondUuid, .bus_id = {}}) {
    return {.open = [](std::string& reason) { return Nvml::open(table(), reason); },
            .identity = [gpu] { return gpu; }};
  }

 private:
  static int found(const char* name, const char* second, void** gpu) {
    if (std::strcmp(name, second) != 0) return kNotFound;
    *gpu = &gpus[1];
    return 0;
  }
  static inline char gpus[2];
};

}  // namespace kernels::test

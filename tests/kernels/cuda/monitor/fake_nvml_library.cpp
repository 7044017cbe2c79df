// A library with some of NVML's functions for dlopen: one GPU without power readings.
#include <cstring>

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** gpu) {
  static char only;
  *gpu = &only;
  return std::strcmp(bus, "00000000:3B:00.0") == 0 ? 0 : 6;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* out) {
  *out = {64, 32};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {8000, 6000, 2000};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int of, unsigned* mhz) {
  *mhz = of == 1 ? 1200 : 5000;
  return 0;
}
}

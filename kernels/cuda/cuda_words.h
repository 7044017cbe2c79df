// Words of messages about a device.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

inline constexpr const char* kKeptWords = "; what was done before is kept";

inline std::string megabytes(std::int64_t bytes) {
  return std::to_string(bytes / 1'000'000 + 1) + " MB";
}
/// "900 MB of 16000 MB are free".
inline std::string free_words(std::int64_t free, std::int64_t total) {
  return megabytes(free) + " of " + megabytes(total) + " are free";
}
/// What is free of the host's memory, as Linux tells it.
inline std::string host_memory_told() {
  std::ifstream told("/proc/meminfo");  // "MemAvailable:  12345 kB"
  std::int64_t free = -1, total = -1, kib = 0;
  std::string name, unit;
  while (told >> name >> kib && std::getline(told, unit)) {
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") free = kib * 1024;
  }
  if (free < 0 || total < 0) return "how much of the host's memory is free is not known";
  return "of the host's memory " + free_words(free, total);
}
/// "cudaErrorUnknown (unknown error)".
inline std::string told(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

}  // namespace kernels::DECOSCOPE_GPU

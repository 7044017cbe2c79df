// Counts the CUDA runtime calls that a function makes, in the emulation.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/emulation/emulation_checks.h"

namespace engine::test {

struct CudaCalls {
  std::int64_t waits, allocations;  // waits for the device; allocations and frees
  std::int64_t to_host, to_device;  // bytes copied
};
inline CudaCalls cuda_calls_of(const std::function<void()>& work) {
  using namespace kernels::emulation;
  const auto now = [] {
    return CudaCalls{calls_of("cudaStreamSynchronize") + calls_of("cudaEventSynchronize"),
                     calls_of("cudaMalloc") + calls_of("cudaMallocHost") + calls_of("cudaFree"),
                     bytes_to_host(), bytes_to_device()};
  };
  const CudaCalls before = now();
  work();
  const CudaCalls after = now();
  return {after.waits - before.waits, after.allocations - before.allocations,
          after.to_host - before.to_host, after.to_device - before.to_device};
}

}  // namespace engine::test

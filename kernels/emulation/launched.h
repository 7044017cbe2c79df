// A kernel on its way to the CPU, between the runtime's calls (runtime.cpp) and the blocks and
// threads that run it (blocks.cpp).
#pragma once

#include <csetjmp>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/emulation/emulation.h"

namespace kernels::emulation {

struct Launched {
  std::string name;
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::function<void()> body;
  bool early = false;  // it may begin before the one before it has ended
};

/// One way through a kernel that ought to make no difference.
struct Order {
  enum class Way { Forward, Backward, Shuffled } way = Way::Forward;
  unsigned char pattern = 0xff;  // what shared memory holds before a block
  bool copies_at_once = false;   // asynchronous copies are made when asked for
  unsigned char marks = 0xff;    // what lies around device memory
};

/// What a kernel did wrong.
struct Fault : std::runtime_error {
  cudaError_t error;
  explicit Fault(const std::string& what, bool address = false)
      : Fault(what, address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure) {}
  Fault(const std::string& what, cudaError_t error_that_stays)
      : std::runtime_error(what), error(error_that_stays) {}
};

constexpr int kMaxThreads = 1024;
// Of one block, static objects and dynamic memory together.
constexpr std::size_t kPlainShared = 48 << 10;  // unless the kernel was allowed more
constexpr std::size_t kMaxShared = 99 << 10;    // sm_86, 89 and 120; others have more

/// What every call does first. @return the error that stays, or that one if it was asked to fail
cudaError_t begin_call(const char* name, cudaError_t refusal = cudaErrorUnknown);
/// An error for the caller and for cudaGetLastError().
cudaError_t refused(cudaError_t error);
/// A launch out of what the runtime is told. @return how a device refuses it, or success
cudaError_t read_launch(const cudaKernelNodeParams& params, Launched& launched);
/// Whether all of [data, data + bytes) is one allocation's.
bool on_device(const void* data, std::size_t bytes);
void add_to_stream(cudaStream_t stream, std::function<void()> item);
/// Notes that a kernel has so many bytes of static objects. @throws Fault when a launch with that
/// much dynamic memory beside them would have been refused
void count_static(const Launched& launched, std::size_t static_bytes);

/// Of the kernel that runs. @throws Fault  unless `lanes` are all 32 of a warp
void expect_whole_warp(unsigned lanes);

/// Runs all blocks. @throws Fault
void run_grid(const Launched& launched, const Order& order);

/// "3 bytes behind 400 bytes of device memory": where an address that may not be touched lies.
std::string place_of(const void* address);

}  // namespace kernels::emulation

// Kernel launches, between the runtime's calls (runtime.cpp) and the blocks and threads that run them (blocks.cpp).
#pragma once

#include <csetjmp>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/emulation/emulation.h"

namespace kernels::emulation {

/// A kernel launch.
struct Launched {
  std::string name;
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::function<void()> body;  // runs the kernel for the current thread
  bool early = false;          // may start while the previous kernel still runs
};

/// An order of threads and blocks and the contents of unwritten memory. A correct kernel gives the same results for all.
struct Order {
  /// Order of threads and blocks.
  enum class Way { Forward, Backward, Shuffled } way = Way::Forward;
  unsigned char pattern = 0xff;  // of shared memory before a block
  bool copies_at_once = false;   // makes asynchronous copies immediately, not at the wait
  unsigned char marks = 0xff;    // around device memory
};

/// A fault of a kernel.
struct Fault : std::runtime_error {
  cudaError_t error;  // a permanent error: every later call returns it
  /// @param address  true: the fault is an access to an illegal address
  explicit Fault(const std::string& what, bool address = false)
      : Fault(what, address ? cudaErrorIllegalAddress : cudaErrorLaunchFailure) {}
  /// A fault with the given permanent error.
  Fault(const std::string& what, cudaError_t permanent)
      : std::runtime_error(what), error(permanent) {}
};

constexpr int kMaxThreads = 1024;
// Bytes of shared memory of a block, static objects and dynamic memory together.
constexpr std::size_t kPlainShared = 48 << 10;  // without the kernel's attribute
constexpr std::size_t kMaxShared = 99 << 10;    // sm_86, 89 and 120; others have more

/// The first step of every call. @return  the permanent error, or `refusal` if fail_call() selects this call
cudaError_t begin_call(const char* name, cudaError_t refusal = cudaErrorUnknown);
/// Records an error for cudaGetLastError() and returns it.
cudaError_t refused(cudaError_t error);
/// Reads a launch from the runtime's parameters. @return  the error with which a device refuses it, or success
cudaError_t read_launch(const cudaKernelNodeParams& params, Launched& launched);
/// True if [data, data + bytes) lies in one allocation.
bool on_device(const void* data, std::size_t bytes);
/// Adds work to a stream.
void add_to_stream(cudaStream_t stream, std::function<void()> item);
/// Records the bytes of static objects that a kernel uses.
/// @throws Fault  if a GPU would have refused a launch with these and its dynamic memory
void count_static(const Launched& launched, std::size_t static_bytes);

/// Checks the running kernel. @throws Fault  unless `lanes` are all 32 lanes of a warp
void expect_whole_warp(unsigned lanes);

/// Runs all blocks of a launch. @throws Fault
void run_grid(const Launched& launched, const Order& order);

/// Describes an inaccessible address: "3 bytes past the end of 400 bytes of device memory".
std::string place_of(const void* address);

}  // namespace kernels::emulation

// Controls of the emulation for tests: checks of kernels, the faults that they found, and injected failures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kernels::emulation {

/// How to check kernels. Out-of-bounds accesses and barriers that not all threads reach are always found.
enum class Watch {
  /// Every kernel runs once, threads in order.
  Once,
  /// Every kernel runs three times from the same memory: threads and blocks in order, backwards and shuffled, with
  /// different patterns in shared memory, and asynchronous copies made late or at once. Any difference in device memory is
  /// a fault: a race, or a read of unwritten shared memory.
  Orders,
};
/// Sets the check of all later kernels; Once at first.
void check_kernels(Watch watch);

/// on: while no kernel and no copy runs, an access of the host to device memory ends in SIGSEGV, as
/// with a GPU. It is off at first, because it costs two system calls per buffer at every wait.
void fence_host_off(bool on);

/// The last fault of a kernel: its name, block, thread, and address or line. Empty: none.
std::string fault_text();
/// Clears faults and the permanent error that follows them, as if a new process had started.
void forget_faults();

/// Makes the n-th runtime call from now (1: the next) fail with the error that is usual for it; 0: none. The environment
/// variable DECOSCOPE_FAIL_CALL sets n for a whole program.
/// @return  calls since it was last set
std::int64_t fail_call(std::int64_t n);
/// As fail_call(n), with a permanent error: every later call returns it too.
/// @param error  CUDA's number; cudaErrorLaunchFailure by default
void fail_call_for_good(std::int64_t n, int error = 719);
/// As fail_call(n), with cudaErrorMemoryAllocation for every call.
void fail_call_for_memory(std::int64_t n);
/// on: cudaStreamQuery reports unfinished work, like a GPU that hangs.
void work_never_ends(bool on);
/// Sets the CUDA version of the driver; 13000, the runtime's, at first.
void driver_version(int version);
/// Sets the compute capability; 9.0 at first.
void capability(int major, int minor);
/// Sets the number of multiprocessors that the device reports; 132 at first.
void multiprocessors(int n);
/// Sets the name of the device, less than 256 characters; "this CPU, emulated" at first.
void title(const std::string& name);
/// Runs `work` with the name of each runtime call before the call, on the calling thread. It may
/// block, like a call to a GPU that hangs. An empty function turns this off.
void before_calls(std::function<void(const std::string& name)> work);
/// Calls of that name so far, failed ones included.
std::int64_t calls_of(const std::string& name);
/// Bytes copied to the host so far.
std::int64_t bytes_to_host();
/// Bytes copied to the device so far.
std::int64_t bytes_to_device();
/// Name of the call that fail_call made fail: "cudaMalloc"; empty: none yet.
std::string failed_call();

/// Limits device memory in bytes; cudaMalloc refuses more.
void limit_memory(std::int64_t bytes);
/// Allocated bytes.
std::int64_t memory_in_use();
/// Largest number of allocated bytes since the last call.
std::int64_t memory_peak();

}  // namespace kernels::emulation

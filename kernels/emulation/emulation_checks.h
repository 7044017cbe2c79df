// The emulation's other side, for tests and for messages: what it watches, what it found, how it is
// made to fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kernels::emulation {

/// How a kernel is watched. Out-of-bounds accesses and threads that do not meet are always seen.
enum class Watch {
  Once,    ///< every kernel runs once, threads in order
  Orders,  ///< every kernel runs three times from the same memory: threads and blocks in order,
           ///< backwards and shuffled, shared memory filled with other patterns, asynchronous
           ///< copies late and at once. A bit of device memory that differs is a fault: a race, or
           ///< a read of shared memory that nothing wrote
};
/// For all kernels from now on; Once at first.
void check_kernels(Watch watch);

/// While no kernel and no copy runs, the host may not touch device memory: it dies of SIGSEGV, as
/// it would with a GPU. Off at first, because every wait then costs two system calls a buffer.
void fence_host_off(bool on);

/// What the kernel that failed last did: its name, block, thread, address or line. Empty: none did.
std::string fault_text();
/// Forgets faults and the error that every call gives since, as a new process would.
void forget_faults();

/// The n-th runtime call from now (1: the next) fails as that call fails when the system refuses;
/// 0: none does. At first n is DECOSCOPE_FAIL_CALL of the environment, for whole programs.
/// @return calls made since it was last set
std::int64_t fail_call(std::int64_t n);
/// As fail_call(n), and with an error that stays: every later call gives it too.
/// @param error  by CUDA's number; at first cudaErrorLaunchFailure
void fail_call_for_good(std::int64_t n, int error = 719);
/// As fail_call(n), but what the call says is that memory is short, whichever it is.
void fail_call_for_memory(std::int64_t n);
/// From now on cudaStreamQuery says that a stream's work goes on, as a GPU's does that hangs.
void work_never_ends(bool on);
/// The CUDA that its driver says to know, by CUDA's number; 13000, the runtime's, at first.
void driver_version(int version);
/// The compute capability that it says to have; 9.0 at first.
void capability(int major, int minor);
/// Sets the number of multiprocessors that the device reports; 132 at first.
void multiprocessors(int n);
/// The name that it says to have, of less than 256 characters; "this CPU, emulated" at first.
void title(const std::string& name);
/// What every runtime call does before anything else, with its name, on the thread that calls: it
/// may wait there, as a call does whose GPU hangs. None: nothing.
void before_calls(std::function<void(const std::string& name)> work);
/// How often a call of that name was made so far, whether it failed or not.
std::int64_t calls_of(const std::string& name);
/// Bytes that were copied, from the device and to it.
std::int64_t bytes_to_host();
std::int64_t bytes_to_device();
/// "cudaMalloc": what was made to fail since fail_call; empty if nothing was.
std::string failed_call();

/// Bytes of device memory that may be had; beyond, cudaMalloc refuses.
void limit_memory(std::int64_t bytes);
/// What is taken of it now.
std::int64_t memory_in_use();
/// The most that was taken at once since this was last asked.
std::int64_t memory_peak();

}  // namespace kernels::emulation

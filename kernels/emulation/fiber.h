// Fibers: stacks that one host thread switches between in a few nanoseconds. The emulation runs each GPU thread on one.
//   switch  saves only the callee-saved registers of the ABI (no signal mask, no system call); processors other than
//           x86-64 and aarch64 use ucontext
//   rules   a fiber ends by switching away for the last time, never by returning; no exception may leave it
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernels::emulation {

/// The point at which a suspended fiber, or the thread that started it, continues.
struct FiberPoint {
  void* at = nullptr;
};

/// A stack with an inaccessible page below it.
class FiberStack {
 public:
  /// Maps the stack.
  FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  ~FiberStack();

  /// Prepares `entry(argument)` to run on this stack, from its top.
  FiberPoint begin(void (*entry)(void*), void* argument);

  /// Lowest address of the stack, for the sanitizers.
  void* low() const { return low_; }
  /// Bytes of each stack.
  static std::size_t size();
  /// ThreadSanitizer's handle.
  void* sanitizer_fiber() const { return sanitizer_fiber_; }

 private:
  void forget_frames() const;
  FiberPoint first_point(void (*entry)(void*), void* argument) const;

  char* mapped_ = nullptr;
  void* low_ = nullptr;
  std::uintptr_t top_ = 0;           // begin of its first frame
  void* context_ = nullptr;          // only with ucontext
  void* sanitizer_fiber_ = nullptr;  // ThreadSanitizer's
};

/// Every entry function calls it first.
void entered_fiber();

/// Must be the first call after a signal handler has jumped from a fiber to the thread's own stack.
void jumped_off_fiber();

/// Switches to `to`; returns when another fiber switches to `from`.
/// @param stack  the stack of `to`; null: the thread's own
void switch_fiber(FiberPoint& from, FiberPoint to, const FiberStack* stack);

}  // namespace kernels::emulation

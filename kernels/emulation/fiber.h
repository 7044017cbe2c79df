// Fibers: stacks that one host thread switches between, in a few nanoseconds. The emulation runs
// each GPU thread on one.
//   switch   saves what the ABI says a callee keeps, and nothing else (no signal mask, no system
//            call); other processors than x86-64 and aarch64 use ucontext
//   rules    a fiber ends by switching away for good, never by returning; an exception may not
//            leave it
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernels::emulation {

/// Where a suspended fiber, or the thread it left, goes on.
struct FiberPoint {
  void* at = nullptr;
};

/// One stack with a page below it that nobody may touch.
class FiberStack {
 public:
  FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  ~FiberStack();

  /// Prepares `entry(argument)` to run on this stack, from its top.
  FiberPoint begin(void (*entry)(void*), void* argument);

  /// What the sanitizers want to know of a stack.
  void* low() const { return low_; }
  static std::size_t size();
  void* sanitizer_fiber() const { return sanitizer_fiber_; }

 private:
  void forget_frames() const;
  FiberPoint first_point(void (*entry)(void*), void* argument) const;

  char* mapped_ = nullptr;
  void* low_ = nullptr;
  std::uintptr_t top_ = 0;           // where its first frame begins
  void* context_ = nullptr;          // where ucontext is used
  void* sanitizer_fiber_ = nullptr;  // ThreadSanitizer's
};

/// What every entry does first.
void entered_fiber();

/// What is done first where a signal's handler has jumped from a fiber to the thread's own stack.
void jumped_off_fiber();

/// Leaves for `to`; comes back when somebody switches to `from`.
/// @param stack  the one that `to` runs on; null: the thread's own
void switch_fiber(FiberPoint& from, FiberPoint to, const FiberStack* stack);

}  // namespace kernels::emulation

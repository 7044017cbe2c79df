#include "kernels/emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <new>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Saves the callee-saved registers on the old stack and loads those of the new one.
#if defined(__x86_64__)
// Ends with a jump instead of `ret`. A processor predicts that `ret` returns to the caller on the
// old stack, so it would mispredict every switch.
asm(R"(
.text
.globl decoscope_switch_stack
.type decoscope_switch_stack,@function
decoscope_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
.size decoscope_switch_stack,.-decoscope_switch_stack
.globl decoscope_first_entry
.type decoscope_first_entry,@function
decoscope_first_entry:
  movq %r12, %rdi
  callq *%rbx
  ud2
.size decoscope_first_entry,.-decoscope_first_entry
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl decoscope_switch_stack
.type decoscope_switch_stack,%function
decoscope_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size decoscope_switch_stack,.-decoscope_switch_stack
.globl decoscope_first_entry
.type decoscope_first_entry,%function
decoscope_first_entry:
  mov x0, x20
  blr x19
  brk #0
.size decoscope_first_entry,.-decoscope_first_entry
)");
#endif

#if defined(__x86_64__) || defined(__aarch64__)
extern "C" void decoscope_switch_stack(void** from, void* to);
extern "C" void decoscope_first_entry();
#endif

namespace kernels::emulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = 256 << 10;
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif

/// Stacks begin at different offsets in a page; otherwise all would use the same sets of the L1 cache.
std::size_t next_offset() {
  static std::atomic<unsigned> n_stacks{0};
  return n_stacks++ % 30 * 128;
}

}  // namespace

std::size_t FiberStack::size() {
  return kStackBytes;
}

FiberStack::FiberStack() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* all = mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  mapped_ = static_cast<char*>(all);
  low_ = mapped_ + page;
  top_ =
      (reinterpret_cast<std::uintptr_t>(low_) + kStackBytes - next_offset()) & ~std::uintptr_t{15};
  mprotect(mapped_, page, PROT_NONE);
#if defined(__SANITIZE_THREAD__)
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
  context_ = new ucontext_t;
#endif
}

FiberStack::~FiberStack() {
  forget_frames();
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(sanitizer_fiber_);
#endif
#if !defined(__x86_64__) && !defined(__aarch64__)
  delete static_cast<ucontext_t*>(context_);
#endif
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  munmap(mapped_, page + kStackBytes);
}

/// Clears AddressSanitizer's marks of frames that no fiber will return to.
void FiberStack::forget_frames() const {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(low_, kStackBytes);
#endif
}

FiberPoint FiberStack::begin(void (*entry)(void*), void* argument) {
  forget_frames();
  return first_point(entry, argument);
}

#if defined(__x86_64__)
FiberPoint FiberStack::first_point(void (*entry)(void*), void* argument) const {
  auto* at = reinterpret_cast<void**>(top_);
  *--at = nullptr, *--at = nullptr;  // aligns the first call
  *--at = reinterpret_cast<void*>(decoscope_first_entry);
  *--at = nullptr;                                    // rbp
  *--at = reinterpret_cast<void*>(entry);             // rbx
  *--at = argument;                                   // r12
  *--at = nullptr, *--at = nullptr, *--at = nullptr;  // r13, r14, r15
  return {at};
}
#elif defined(__aarch64__)
FiberPoint FiberStack::first_point(void (*entry)(void*), void* argument) const {
  auto* at = reinterpret_cast<void**>(top_ - 160);
  for (int i = 0; i < 20; i++) at[i] = nullptr;
  at[0] = reinterpret_cast<void*>(entry);                   // x19
  at[1] = argument;                                         // x20
  at[11] = reinterpret_cast<void*>(decoscope_first_entry);  // x30
  return {at};
}
#else
FiberPoint FiberStack::first_point(void (*entry)(void*), void* argument) const {
  auto* context = static_cast<ucontext_t*>(context_);
  getcontext(context);
  context->uc_stack.ss_sp = low_;
  context->uc_stack.ss_size = kStackBytes;
  context->uc_link = nullptr;
  makecontext(context, reinterpret_cast<void (*)()>(entry), 1, argument);
  return {context};
}
#endif

#if defined(__SANITIZE_ADDRESS__)
namespace {
// The thread's own stack, recorded when it enters a fiber.
thread_local const void* own_low = nullptr;
thread_local std::size_t own_size = 0;
}  // namespace
#endif

void entered_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  const void* low = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &low, &size);
  if (!own_low) own_low = low, own_size = size;
#endif
}

void jumped_off_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, own_low, own_size);
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

void switch_fiber(FiberPoint& from, FiberPoint to, [[maybe_unused]] const FiberStack* stack) {
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack ? stack->low() : own_low,
                                 stack ? FiberStack::size() : own_size);
#endif
#if defined(__SANITIZE_THREAD__)
  static thread_local void* own_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack ? stack->sanitizer_fiber() : own_fiber, 0);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  decoscope_switch_stack(&from.at, to.at);
#else
  ucontext_t here;
  from.at = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to.at));
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

}  // namespace kernels::emulation

// A kernel on its way to the CPU, between the runtime's calls (runtime.cpp) and the blocks and
// threads that run it (blocks.cpp).
#pragma once

#include <csetjmp>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/cuda/emulate/emulation.h"

namespace kernels::emulation {

struct Launched {
  std::string name;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::function<void()> body;
};

/// One way through a kernel that ought to make no difference.
struct Order {
  enum class Way { Forward, Backward, Shuffled } way = Way::Forward;
  unsigned char pattern = 0xff;  // what shared memory holds before a block
  bool copies_at_once = false;   // asynchronous copies are made when asked for
};

/// What a kernel did wrong.
struct Fault : std::runtime_error {
  bool illegal_address = false;
  explicit Fault(const std::string& what, bool address = false)
      : std::runtime_error(what), illegal_address(address) {}
};

constexpr int kMaxThreads = 1024;
constexpr std::size_t kMaxShared = 227 << 10;  // of one block, as on sm_90

/// Runs all blocks. @throws Fault
void run_grid(const Launched& launched, const Order& order);

/// "3 bytes behind 400 bytes of device memory": where an address that may not be touched lies.
std::string place_of(const void* address);

}  // namespace kernels::emulation

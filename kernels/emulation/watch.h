// Kernels as they are watched: device memory as it was before and after, the marks around it, and
// the orders in which a kernel runs.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/emulation/launched.h"

namespace kernels::emulation {

/// Device memory of one cudaMalloc. Marks before it, and up to 15 bytes of them behind it, fill its
/// pages; before and behind these lies a page that nobody may touch.
struct Allocation {
  char* mapped;
  std::size_t mapped_bytes;  // between the pages that nobody may touch
  char* data;
  std::size_t bytes;
  unsigned char mark_before = 0xa5, mark_behind = 0xa5;  // each byte of the marks there
  char* behind() const { return data + bytes; }
  char* end() const { return mapped + mapped_bytes; }
  std::size_t n_before() const { return static_cast<std::size_t>(data - mapped); }
  std::size_t n_behind() const { return static_cast<std::size_t>(end() - behind()); }
};

/// Does `work` with all of them; meanwhile none is taken or given back.
void with_each_allocation(const std::function<void(Allocation&)>& work);
/// Writes the marks that it says it has.
void fill_marks(const Allocation& allocation);

/// Runs a kernel as check_kernels() asked. @throws Fault
void run_watched(const Launched& launched);
/// Runs kernels in one order or, where they are watched, in both, each from the same memory.
/// @throws Fault  if a bit differs
void run_both_ways(const std::function<void()>& watched_too, const std::function<void()>& always);

}  // namespace kernels::emulation

// Checks of kernels: snapshots of device memory, the marks around it, and the orders in which a kernel runs.
#pragma once

#include <cstddef>
#include <functional>

#include "kernels/emulation/launched.h"

namespace kernels::emulation {

/// Device memory of one cudaMalloc. Marks fill its pages before the data and up to 15 bytes after it. An inaccessible page
/// precedes and follows the pages.
struct Allocation {
  char* mapped;
  std::size_t mapped_bytes;  // bytes of the mapping between the inaccessible pages
  char* data;
  std::size_t bytes;
  unsigned char mark_before = 0xa5, mark_after = 0xa5;  // value of the marks' bytes
  /// End of the data.
  char* data_end() const { return data + bytes; }
  /// End of the pages.
  char* end() const { return mapped + mapped_bytes; }
  /// Bytes of marks before the data.
  std::size_t n_before() const { return static_cast<std::size_t>(data - mapped); }
  /// Bytes of marks after the data.
  std::size_t n_after() const { return static_cast<std::size_t>(end() - data_end()); }
};

/// Calls `work` for each allocation. No memory is allocated or freed during this call.
void with_each_allocation(const std::function<void(Allocation&)>& work);
/// Writes its marks.
void fill_marks(const Allocation& allocation);

/// Runs a kernel with the check of check_kernels(). @throws Fault
void run_watched(const Launched& launched);
/// Runs `always`; with Watch::Orders also `watched_too`, from the same memory.
/// @throws Fault  if the results differ in a bit
void run_both_ways(const std::function<void()>& watched_too, const std::function<void()>& always);

}  // namespace kernels::emulation

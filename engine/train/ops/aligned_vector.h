// Vectors aligned to cache lines; large vectors use huge pages. This avoids vector loads that cross
// cache lines, and TLB misses in products that stream over megabytes of activations.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

namespace engine {

/// Allocates memory aligned to a cache line. From 4 MiB on it is aligned to a huge page and
/// requests huge pages from the system.
/// @throws std::bad_alloc
void* allocate_aligned(std::size_t bytes);
/// Frees memory of allocate_aligned().
void free_aligned(void* memory) noexcept;

/// A standard allocator over allocate_aligned().
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  /// Allocators of all types are interchangeable.
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) noexcept {}
  /// Memory for n elements. @throws std::bad_array_new_length, std::bad_alloc
  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_aligned(n * sizeof(T)));
  }
  /// Frees memory of allocate().
  void deallocate(T* memory, std::size_t) noexcept { free_aligned(memory); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

/// A vector with aligned memory.
template <typename T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace engine

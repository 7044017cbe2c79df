// Vectors of a training's operands: their memory begins at a cache line and, where it is large,
// lies on huge pages, for a product that streams over megabytes of activations otherwise pays for
// vector loads across lines and for translations of addresses.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

namespace engine {

/// Begins at a cache line; from 4 MiB on at a huge page, which the system is asked for.
/// @throws std::bad_alloc
void* allocate_aligned(std::size_t bytes);
void free_aligned(void* memory) noexcept;

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_aligned(n * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t) noexcept { free_aligned(memory); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <typename T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace engine

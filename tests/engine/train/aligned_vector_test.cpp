#include "engine/train/ops/aligned_vector.h"

#include <cstdint>
#include <limits>
#include <new>
#include <numeric>

#include <gtest/gtest.h>

namespace {

using engine::AlignedVector;

std::uintptr_t place(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

TEST(AlignedVector, starts_at_a_cache_line_at_every_size) {
  for (std::size_t n = 1; n < 5000; n = n * 3 + 1) {
    const AlignedVector<float> numbers(n);
    EXPECT_EQ(place(numbers.data()) % 64, 0u) << n;
  }
}

TEST(AlignedVector, large_vectors_start_at_a_huge_page) {
  const AlignedVector<std::uint16_t> numbers(std::size_t{3} << 20);
  EXPECT_EQ(place(numbers.data()) % (std::size_t{2} << 20), 0u);
}

TEST(AlignedVector, keeps_its_elements_when_it_grows) {
  AlignedVector<std::int32_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  numbers.resize(std::size_t{2} << 20);
  EXPECT_EQ(place(numbers.data()) % (std::size_t{2} << 20), 0u);
  for (std::int32_t i = 0; i < 1000; i++) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(numbers.back(), 0);
}

TEST(AlignedVector, impossible_size_is_refused) {
  engine::AlignedAllocator<double> allocator;
  EXPECT_THROW(allocator.allocate(std::numeric_limits<std::size_t>::max() / 4), std::bad_alloc);
  EXPECT_THROW(engine::allocate_aligned(std::numeric_limits<std::size_t>::max() - 10),
               std::bad_alloc);
}

}  // namespace

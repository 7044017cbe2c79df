// The position of each element in a packed matrix.
#include "kernels/cuda/packed.cuh"
//
#include <set>

#include <gtest/gtest.h>

namespace kernels::cuda_emulated {
namespace {

TEST(PackedOrder, a_chunk_lies_at_its_computed_position) {
  for (int n = 1; n <= 40; n++) {
    std::set<int> places;
    for (int chunk = 0; chunk < n; chunk++) {
      const int place = place_of_chunk(chunk, n);
      EXPECT_EQ(chunk_at(place, n), chunk) << "of " << n;
      places.insert(place);
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), n - 1);
  }
}

TEST(PackedOrder, chunks_of_a_partial_sum_are_adjacent_and_in_order) {
  for (int n = 1; n <= 40; n++) {
    int place = 0;
    for (int partial = 0; partial < kPartials; partial++) {
      EXPECT_EQ(place_of_partial(partial, n), place) << "of " << n;
      for (int chunk = partial; chunk < n; chunk += kPartials)
        EXPECT_EQ(place_of_chunk(chunk, n), place++) << chunk << " of " << n;
    }
    EXPECT_EQ(place_of_partial(kPartials, n), place);
    EXPECT_EQ(place, n);
  }
}

TEST(PackedOrder, packed_halves_have_distinct_consecutive_places) {
  for (const int n_chunks : {1, 2, 3, 4, 5, 9}) {
    std::set<std::int64_t> places;
    constexpr int kOutputs = 2 * kBlockOutputs;
    const std::int64_t all = std::int64_t{kOutputs} * n_chunks * kChunk;
    for (int output = 0; output < kOutputs; output++) {
      for (int j = 0; j < n_chunks * kChunk; j++) {
        const std::int64_t place = place_of_half(output, j, n_chunks);
        places.insert(place);
        ASSERT_EQ(place / (all / 2), output / kBlockOutputs) << output << " " << j;
        ASSERT_EQ(chunk_at(static_cast<int>(place / (kBlockOutputs * kChunk)) % n_chunks, n_chunks),
                  j / kChunk);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), all);
    EXPECT_EQ(*places.rbegin(), all - 1);
  }
}

}  // namespace
}  // namespace kernels::cuda_emulated

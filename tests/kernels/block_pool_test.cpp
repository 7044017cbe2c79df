// Blocks that share huge pages.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/memory/block_pool.h"
#include "kernels/error.h"

namespace kernels::test {
namespace {

using cpu::BlockPool;

struct Block {
  char* at;
  std::int64_t bytes;
  char mark;
};
bool is_intact(const Block& block) {
  return std::all_of(block.at, block.at + block.bytes, [&](char c) { return c == block.mark; });
}

TEST(BlockPool, blocks_are_aligned_and_do_not_overlap) {
  BlockPool pool;
  std::mt19937 random(7);
  std::vector<Block> blocks;
  for (int turn = 0; turn < 600; turn++) {
    if (blocks.size() > 20 || (random() % 3 == 0 && !blocks.empty())) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      EXPECT_TRUE(is_intact(blocks.back()));
      EXPECT_TRUE(pool.give_back(blocks.back().at));
      blocks.pop_back();
      continue;
    }
    const std::int64_t bytes = BlockPool::kLeast + random() % 40000 * 64;
    auto* at = static_cast<char*>(pool.take(bytes));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
    blocks.push_back({at, bytes, static_cast<char>(turn)});
    std::memset(at, turn, static_cast<std::size_t>(bytes));
  }
  for (const Block& block : blocks) EXPECT_TRUE(is_intact(block));
  for (const Block& block : blocks) EXPECT_TRUE(pool.give_back(block.at));
  EXPECT_EQ(pool.n_regions(), 1);
  std::vector<void*> large;
  for (int i = 0; i < 4; i++) large.push_back(pool.take(BlockPool::kMost));
  EXPECT_EQ(pool.n_regions(), 1);
  for (void* at : large) EXPECT_TRUE(pool.give_back(at));
}

TEST(BlockPool, freed_neighbours_become_one_range) {
  BlockPool pool;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; i++) blocks.push_back(pool.take(BlockPool::kMost));
  EXPECT_EQ(pool.n_regions(), 1);
  std::vector<void*> small;
  EXPECT_TRUE(pool.give_back(blocks[1]));
  for (int i = 0; i < 4; i++) small.push_back(pool.take(BlockPool::kMost / 4));
  for (const int i : {2, 0, 1, 3}) EXPECT_TRUE(pool.give_back(small[static_cast<std::size_t>(i)]));
  EXPECT_EQ(pool.take(BlockPool::kMost), blocks[1]);
  EXPECT_EQ(pool.n_regions(), 1);
  blocks.push_back(pool.take(BlockPool::kLeast));
  EXPECT_EQ(pool.n_regions(), 2);
  for (void* at : blocks) EXPECT_TRUE(pool.give_back(at));
}

TEST(BlockPool, refuses_other_sizes_and_blocks) {
  BlockPool pool;
  EXPECT_THROW(pool.take(BlockPool::kLeast - 64), ContractError);
  EXPECT_THROW(pool.take(BlockPool::kMost + 64), ContractError);
  EXPECT_THROW(pool.take(BlockPool::kLeast + 1), ContractError);
  int other = 0;
  EXPECT_FALSE(pool.give_back(&other));
  EXPECT_FALSE(pool.give_back(nullptr));
}

}  // namespace
}  // namespace kernels::test

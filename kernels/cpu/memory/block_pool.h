// Blocks of memory that are too small for huge pages of their own, so they share huge pages. A matrix of one megabyte in ordinary
// pages is read at half the speed, because the hardware's prefetching ends at each page and the TLB misses.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace kernels::cpu {

/// Allocates blocks from regions of huge pages, each in the first free range that is large enough. Returns a region without blocks
/// to the system, but keeps one. Thread-safe.
class BlockPool {
 public:
  /// The least and the most bytes of a block.
  static constexpr std::int64_t kLeast = 16 << 10, kMost = 8 << 20;

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();
  /// A block aligned to 64 bytes; its contents are undefined. Null: the system has no memory for another region.
  /// @param bytes  kLeast to kMost, a multiple of 64
  void* take(std::int64_t bytes);
  /// Frees a block of take(). @return  false if `block` is not from take()
  bool give_back(void* block);
  /// Number of regions that the pool holds.
  int n_regions() const;

 private:
  bool add_region();
  /// Marks [at, at + bytes) free and joins it to the free neighbours of its region.
  void add_free(char* at, std::int64_t bytes);

  mutable std::mutex mutex_;
  std::map<char*, std::int64_t> free_;             // begin and bytes of each free range
  std::unordered_map<void*, std::int64_t> taken_;  // bytes of each block
  int n_regions_ = 0;
};

}  // namespace kernels::cpu

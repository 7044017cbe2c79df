#include "kernels/cpu/memory/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/error.h"

namespace kernels::cpu {
namespace {

// Regions are aligned to their size. The system gives a region memory only where blocks are written, a huge page at a time.
constexpr std::int64_t kRegion = 32 << 20;

bool begins_region(const char* at) {
  return reinterpret_cast<std::uintptr_t>(at) % kRegion == 0;
}

}  // namespace

BlockPool::~BlockPool() {
  // Blocks in use stay valid: their regions are not freed.
  for (const auto& [at, bytes] : free_)
    if (bytes == kRegion) std::free(at);
}

bool BlockPool::add_region() {
  auto* region = static_cast<char*>(std::aligned_alloc(kRegion, kRegion));
  if (!region) return false;
  madvise(region, kRegion, MADV_HUGEPAGE);  // only a hint
  free_.emplace(region, kRegion);
  n_regions_++;
  return true;
}

void* BlockPool::take(std::int64_t bytes) {
  ensure(bytes >= kLeast && bytes <= kMost && bytes % 64 == 0, "BlockPool: bad size of a block");
  const std::lock_guard lock(mutex_);
  const auto fits = [bytes](const auto& range) { return range.second >= bytes; };
  auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) {
    if (!add_region()) return nullptr;
    found = std::ranges::find_if(free_, fits);
  }
  const auto [at, free_bytes] = *found;
  free_.erase(found);
  if (free_bytes > bytes) free_.emplace(at + bytes, free_bytes - bytes);
  taken_.emplace(at, bytes);
  return at;
}

void BlockPool::add_free(char* at, std::int64_t bytes) {
  const auto next = free_.find(at + bytes);
  if (next != free_.end() && !begins_region(next->first)) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(at);
  if (after != free_.begin() && !begins_region(at)) {
    const auto before = std::prev(after);
    if (before->first + before->second == at) {
      at = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  if (bytes < kRegion || n_regions_ == 1) {
    free_.emplace(at, bytes);
    return;
  }
  std::free(at);
  n_regions_--;
}

bool BlockPool::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(block);
  if (taken == taken_.end()) return false;
  const std::int64_t bytes = taken->second;
  taken_.erase(taken);
  add_free(static_cast<char*>(block), bytes);
  return true;
}

int BlockPool::n_regions() const {
  const std::lock_guard lock(mutex_);
  return n_regions_;
}

}  // namespace kernels::cpu

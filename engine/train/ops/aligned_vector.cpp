#include "engine/train/ops/aligned_vector.h"

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace engine {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Sizes are rounded up to whole huge pages, which would waste too much memory for smaller vectors.
constexpr std::size_t kWorthHugePages = 2 * kHugePage;

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  const std::size_t unit = bytes >= kWorthHugePages ? kHugePage : kCacheLine;
  if (bytes > std::numeric_limits<std::size_t>::max() - unit) throw std::bad_alloc();
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, whole > 0 ? whole : unit);
  if (!memory) throw std::bad_alloc();
#if defined(__linux__)
  // madvise() is only a hint; without huge pages the memory works, but more slowly.
  if (unit == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_aligned(void* memory) noexcept {
  std::free(memory);
}

}  // namespace engine

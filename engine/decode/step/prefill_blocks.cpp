#include "engine/decode/step/prefill_blocks.h"

#include <algorithm>

namespace engine {

int n_reusable_positions(const SequenceCache& cache, int n, int n_positions, int block) {
  if (block == 0) return n;
  const int wanted = n_positions / block * block, had = cache.n_in_blocks();
  if (had == wanted && n >= wanted) return n;
  return std::min({n, had, wanted}) / block * block;
}

PrefillChunk next_prefill_chunk(int done, int n_positions, int max_rows, int block) {
  const int in_blocks = block > 0 ? n_positions / block * block - done : 0;
  if (in_blocks <= 0) return {std::min(max_rows, n_positions - done), false};
  return {std::min(std::max(1, kBlocksAtOnce * max_rows / block) * block, in_blocks), true};
}

}  // namespace engine

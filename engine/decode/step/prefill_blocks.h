// Which positions of a prompt are read how, where a device reads whole blocks of it by a path that
// is not a step's (LanguageModel::prompt_block()), so that equal texts have equal bits:
//   in blocks  positions [0, n / block * block) of n: whole blocks, counted from the text's start
//   as steps   those behind them
// A cache that began as another prompt, or has steps behind one, is gone on from as far as this is
// how it came to be.
#pragma once

#include "engine/model/language_model.h"

namespace engine {

/// Blocks that go through the model together: what a device does once a forward it then does for
/// more rows.
inline constexpr int kBlocksAtOnce = 4;

/// Positions of a cache with which a prompt can go on.
/// @param n            the first of the cache's, whose tokens are the prompt's
/// @param n_positions  of the prompt: its tokens but the last
/// @param block        the model's prompt_block()
int n_reusable_positions(const SequenceCache& cache, int n, int n_positions, int block);

/// Rows of a prompt's next forward.
struct PrefillChunk {
  int n_rows = 0;
  bool in_blocks = false;
};
/// @param done      positions that are there, n_reusable() of them
/// @param max_rows  of a forward; whole blocks go kBlocksAtOnce times as many, and one at least
PrefillChunk next_prefill_chunk(int done, int n_positions, int max_rows, int block);

}  // namespace engine

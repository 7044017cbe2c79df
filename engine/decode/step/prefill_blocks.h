// Splits a prompt's positions between two computation paths. Some devices compute whole blocks of a
// prompt by a faster path, whose results differ in the last bits from those of a step
// (LanguageModel::prompt_block()). The split depends only on positions, so equal prompts get equal
// bits:
//   in blocks  positions [0, n / block * block) of n: whole blocks from the start
//   as steps   the remaining positions
// Cached positions of another sequence are reused only if the same path computed them.
#pragma once

#include "engine/model/language_model.h"

namespace engine {

/// A forward of whole blocks may have this many times `max_rows` rows. More rows per forward mean
/// that its fixed cost is paid less often.
inline constexpr int kBlocksAtOnce = 4;

/// Number of a cache's leading positions that a prompt can reuse.
/// @param n            leading positions whose tokens equal the prompt's
/// @param n_positions  positions of the prompt: all tokens but the last
/// @param block        the model's prompt_block(); 0: every position is computed the same way
int n_reusable_positions(const SequenceCache& cache, int n, int n_positions, int block);

/// The rows of one forward of a prefill.
struct PrefillChunk {
  int n_rows = 0;
  bool in_blocks = false;
};
/// The next forward of a prefill.
/// @param done         positions computed so far, n_reusable_positions() at the start
/// @param n_positions  positions of the prompt
/// @param max_rows     largest number of rows of a forward of steps. A forward of whole blocks may
///                     have kBlocksAtOnce times as many rows, and has at least one block
/// @param block        the model's prompt_block(); 0: no blocks
PrefillChunk next_prefill_chunk(int done, int n_positions, int max_rows, int block);

}  // namespace engine

// The n-gram pool at the playhead, rebuilt from what was added, evicted and tried.
#pragma once

#include <map>
#include <vector>

#include "engine/event/timeline.h"

namespace ui {

struct PoolEntry {
  engine::PoolNgram ngram;
  engine::StepId last_tried = -1;
};

/// Going forward takes over the new steps alone; going back starts over.
struct PoolState {
  engine::RunId run = 0;
  std::size_t n_steps = 0;
  std::map<std::pair<engine::TokenId, std::vector<engine::TokenId>>, PoolEntry> entries;
  int n_keys = 0, n_ngrams = 0;  // as the engine last said
  std::vector<engine::PoolNgram> tried_now;
};
void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps);

enum class PoolOrder { Newest, Hits, Tries, First };
/// Entries in the order wanted, at most `limit`.
std::vector<const PoolEntry*> rows_in_view(const PoolState& pool,
                                           PoolOrder order,
                                           std::size_t limit);

}  // namespace ui

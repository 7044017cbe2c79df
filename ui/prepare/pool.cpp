#include "ui/prepare/pool.h"

#include <algorithm>

namespace ui {

void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps) {
  n_steps = std::min(n_steps, run.steps.size());
  if (pool.run != run.id() || n_steps < pool.n_steps) {
    pool = PoolState{};
    pool.run = run.id();
  }
  for (; pool.n_steps < n_steps; ++pool.n_steps) {
    const auto& change = run.steps[pool.n_steps].pool;
    pool.tried_now.clear();
    if (!change) continue;
    for (const engine::PoolNgram& n : change->evicted) pool.entries.erase({n.first, n.rest});
    for (const engine::PoolNgram& n : change->added) pool.entries[{n.first, n.rest}].ngram = n;
    for (const engine::PoolNgram& n : change->tried) {
      const auto found = pool.entries.find({n.first, n.rest});
      if (found == pool.entries.end()) continue;
      found->second.ngram = n;
      found->second.last_tried = change->step;
    }
    pool.tried_now = change->tried;
    pool.n_keys = change->n_keys;
    pool.n_ngrams = change->n_ngrams;
  }
}

std::vector<const PoolEntry*> rows_in_view(const PoolState& pool,
                                           PoolOrder order,
                                           std::size_t limit) {
  std::vector<const PoolEntry*> rows;
  rows.reserve(pool.entries.size());
  for (const auto& [key, entry] : pool.entries) rows.push_back(&entry);
  const auto before = [order](const PoolEntry* a, const PoolEntry* b) {
    if (order == PoolOrder::Newest) return a->ngram.born > b->ngram.born;
    if (order == PoolOrder::Hits) return a->ngram.n_hits > b->ngram.n_hits;
    if (order == PoolOrder::Tries) return a->ngram.n_tries > b->ngram.n_tries;
    return a->ngram.first < b->ngram.first;
  };
  const std::size_t n = std::min(limit, rows.size());
  std::stable_sort(rows.begin(), rows.end(), before);
  rows.resize(n);
  return rows;
}

}  // namespace ui

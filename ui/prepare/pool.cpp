#include "ui/prepare/pool.h"

#include <algorithm>

#include "ui/prepare/search.h"

namespace ui {

void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps) {
  n_steps = std::min(n_steps, run.steps.size());
  if (pool.run != run.id() || n_steps < pool.n_steps) {
    pool = PoolState{};
    pool.run = run.id();
  }
  for (; pool.n_steps < n_steps; ++pool.n_steps) {
    const std::optional<engine::PoolChanged> change = run.steps[pool.n_steps].pool;
    pool.tried_now.clear();
    pool.rows = {};
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

const PoolState::Rows& rows_in_view(PoolState& pool,
                                    PoolOrder order,
                                    const std::string& filter,
                                    const TextOfNgram& text_of,
                                    std::size_t limit) {
  PoolState::Rows& rows = pool.rows;
  if (rows.ready && rows.order == order && rows.filter == filter) return rows;
  rows = {.ready = true, .order = order, .filter = filter};
  for (const auto& [key, entry] : pool.entries)
    if (filter.empty() || found_in(text_of(entry.ngram), filter)) rows.entries.push_back(&entry);
  rows.n_found = rows.entries.size();
  std::stable_sort(rows.entries.begin(), rows.entries.end(),
                   [order](const PoolEntry* a, const PoolEntry* b) {
                     if (order == PoolOrder::Newest) return a->ngram.born > b->ngram.born;
                     if (order == PoolOrder::Hits) return a->ngram.n_hits > b->ngram.n_hits;
                     if (order == PoolOrder::Tries) return a->ngram.n_tries > b->ngram.n_tries;
                     return a->ngram.first < b->ngram.first;
                   });
  rows.entries.resize(std::min(limit, rows.entries.size()));
  return rows;
}

}  // namespace ui

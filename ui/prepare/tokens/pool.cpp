#include "ui/prepare/tokens/pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/prepare/search.h"
#include "ui/prepare/tokens/trajectory.h"

namespace ui {
namespace {

using engine::RowTag;

int child_of(const engine::TokenTree& tree, int parent, engine::TokenId token) {
  for (int row = parent + 1; row < tree.n_rows(); ++row)
    if (tree.parent[row] == parent && tree.token[row] == token &&
        tree.tag[row].kind == RowTag::Kind::Guess)
      return row;
  return -1;
}

void apply(PoolEntries& entries, const engine::PoolChanged& change) {
  for (const engine::PoolNgram& n : change.evicted) entries.erase({n.first, n.rest});
  for (const engine::PoolNgram& n : change.added) entries[{n.first, n.rest}].ngram = n;
  for (const engine::PoolNgram& n : change.tried) {
    const auto found = entries.find({n.first, n.rest});
    if (found == entries.end()) continue;
    if (n.n_hits > found->second.ngram.n_hits) found->second.last_hit = change.step;
    found->second.ngram = n;
    found->second.last_tried = change.step;
  }
}

// Entries as numbers, which take less memory than the map and are faster to copy.
std::vector<std::int32_t> packed(const PoolEntries& entries) {
  std::vector<std::int32_t> all;
  all.reserve(entries.size() * 10);
  for (const auto& [key, entry] : entries) {
    const engine::PoolNgram& n = entry.ngram;
    all.insert(all.end(), {n.first, static_cast<std::int32_t>(n.rest.size())});
    all.insert(all.end(), n.rest.begin(), n.rest.end());
    all.insert(all.end(), {n.born, static_cast<std::int32_t>(n.n_hits),
                           static_cast<std::int32_t>(n.n_tries), entry.last_tried, entry.last_hit});
  }
  return all;
}

PoolEntries unpacked(const std::vector<std::int32_t>& all) {
  PoolEntries entries;
  for (auto at = all.begin(); at != all.end();) {
    PoolEntry entry;
    entry.ngram.first = *at++;
    const int n_rest = *at++;
    entry.ngram.rest.assign(at, at + n_rest);
    at += n_rest;
    entry.ngram.born = *at++;
    entry.ngram.n_hits = static_cast<std::uint32_t>(*at++);
    entry.ngram.n_tries = static_cast<std::uint32_t>(*at++);
    entry.last_tried = *at++;
    entry.last_hit = *at++;
    std::pair key{entry.ngram.first, entry.ngram.rest};
    entries.emplace_hint(entries.end(), std::move(key), std::move(entry));
  }
  return entries;
}

std::size_t bytes_of(const std::vector<std::int32_t>& copy) {
  return copy.size() * sizeof(copy[0]);
}

// Keeps a copy of the entries. When the copies are too large, every second one is dropped.
void save(PoolState& pool) {
  const auto [place, added] = pool.saved.try_emplace(pool.n_steps);
  if (!added) return;
  place->second = packed(pool.entries);
  pool.saved_bytes += bytes_of(place->second);
  while (pool.saved_bytes > pool.most_saved_bytes && pool.saved.size() > 1) {
    pool.saved_every *= 2;
    std::erase_if(pool.saved, [&](const auto& one) {
      const bool drop = one.first % pool.saved_every != 0;
      if (drop) pool.saved_bytes -= bytes_of(one.second);
      return drop;
    });
  }
}

// Continues from the last copy before `n_steps`, unless the entries are nearer to it already.
void begin_near(PoolState& pool, std::size_t n_steps) {
  const auto after = pool.saved.upper_bound(n_steps);
  const auto nearest = after == pool.saved.begin() ? pool.saved.end() : std::prev(after);
  const std::size_t from = nearest == pool.saved.end() ? 0 : nearest->first;
  if (pool.n_steps <= n_steps && from <= pool.n_steps) return;
  pool.n_steps = from;
  pool.entries = from == 0 ? PoolEntries{} : unpacked(nearest->second);
}

}  // namespace

// N-grams with a common beginning share rows, so the rows of an n-gram are found by following its tokens from the root.
std::vector<PoolCandidate> candidates_of(const engine::StepRecord& step) {
  std::vector<PoolCandidate> all;
  if (!step.pool) return all;
  const engine::TokenTree& tree = step.drafted.tree;
  const std::vector<engine::RowFate>& fate = step.verified.fate;
  for (const engine::PoolNgram& ngram : step.pool->tried) {
    PoolCandidate candidate{.ngram = ngram};
    int at = tree.n_rows() > 0 ? 0 : -1;
    for (const engine::TokenId token : ngram.rest) {
      at = at >= 0 ? child_of(tree, at, token) : -1;
      if (at < 0) break;
      candidate.rows.push_back(at);
      const bool accepted = at < static_cast<int>(fate.size()) &&
                            fate[static_cast<std::size_t>(at)] == engine::RowFate::Accepted;
      if (accepted && candidate.n_accepted + 1 == static_cast<int>(candidate.rows.size()))
        ++candidate.n_accepted;
    }
    all.push_back(std::move(candidate));
  }
  return all;
}

std::vector<CopiedPath> copied_paths(const engine::StepRecord& step) {
  const engine::TokenTree& tree = step.drafted.tree;
  const auto is_guess = [&](int row) { return tree.tag[row].kind == RowTag::Kind::Guess; };
  std::vector<bool> is_leaf(tree.token.size(), true);
  for (int row = 0; row < tree.n_rows(); ++row)
    if (tree.parent[row] >= 0 && is_guess(row)) is_leaf[tree.parent[row]] = false;
  std::vector<CopiedPath> paths;
  for (int leaf = 0; leaf < tree.n_rows(); ++leaf) {
    if (!is_leaf[leaf] || !is_guess(leaf)) continue;
    CopiedPath path;
    for (int row = leaf; row >= 0 && is_guess(row); row = tree.parent[row])
      path.rows.insert(path.rows.begin(), row);
    for (const int row : path.rows)
      path.n_accepted += row < static_cast<int>(step.verified.fate.size()) &&
                         step.verified.fate[row] == engine::RowFate::Accepted;
    paths.push_back(std::move(path));
  }
  return paths;
}

// Searches for a window column whose cells, from the first level down, contain the n-gram.
std::vector<int> source_rows(const engine::StepRecord& step, const engine::PoolNgram& ngram) {
  const WindowGrid window = window_grid(step);
  const engine::TokenTree& tree = step.drafted.tree;
  if (window.row_of.empty() || window.row_of.size() != ngram.rest.size()) return {};
  for (std::size_t column = 0; column < window.row_of.back().size(); ++column) {
    std::vector<int> rows;
    for (const std::vector<int>& level : window.row_of)
      rows.push_back(column < level.size() ? level[column] : -1);
    if (column == 0 && rows[0] < 0) rows[0] = 0;  // the first cell is the last committed token
    bool same = std::ranges::none_of(rows, [](int row) { return row < 0; });
    for (std::size_t i = 0; same && i < rows.size(); ++i)
      same = tree.token[rows[i]] == (i == 0 ? ngram.first : ngram.rest[i - 1]);
    const auto last = static_cast<std::size_t>(rows.back());
    if (same && last < step.verified.picked.size() &&
        step.verified.picked[last] == ngram.rest.back())
      return rows;
  }
  return {};
}

void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps) {
  n_steps = std::min(n_steps, run.steps.size());
  if (pool.run != run.id()) {
    pool = PoolState{};
    pool.run = run.id();
  }
  if (pool.n_steps == n_steps) return;
  pool.rows = {};
  begin_near(pool, n_steps);
  pool.n_keys = pool.n_ngrams = 0;
  for (std::size_t i = n_steps; i > 0; --i) {  // the last sizes that were reported
    if (!run.steps.head(i - 1).has_pool) continue;
    const engine::StepRecord step = run.steps[i - 1];
    pool.n_keys = step.pool->n_keys;
    pool.n_ngrams = step.pool->n_ngrams;
    break;
  }
  while (pool.n_steps < n_steps) {
    if (const auto change = run.steps.pool_lists(pool.n_steps)) {
      apply(pool.entries, *change);
      pool.most_tried = std::max(pool.most_tried, change->tried.size());
    }
    ++pool.n_steps;
    if (pool.n_steps % pool.saved_every == 0) save(pool);
  }
}

PoolWithoutCandidates pool_without_candidates(const PoolState& pool,
                                              const engine::RunRecord& run,
                                              std::size_t i,
                                              const std::string& last_token) {
  PoolWithoutCandidates found;
  const engine::StepRecord step = run.steps[i];
  const engine::StepId id = step.begun.step;
  const auto is_earlier = [id](const auto& one) { return one.second.ngram.born < id; };
  const engine::TokenId last = step.drafted.tree.n_rows() > 0 ? step.drafted.tree.token[0] : -1;
  const auto has_last = [&](const auto& one) { return one.first.first == last && is_earlier(one); };
  if (const auto* dropped = run.dropped_at(engine::PayloadKind::Pool, id))
    found.why = engine::describe(*dropped);
  else if (std::ranges::none_of(pool.entries, is_earlier))
    found.why = "The pool was empty before this step.";
  else if (std::ranges::none_of(pool.entries, has_last))
    found.why = fmt::format("No n-gram of the pool began with \"{}\", the last token.", last_token);
  else
    found.why = fmt::format(
        "The pool had n-grams that begin with \"{}\", but the step verified none of them.",
        last_token);
  if (step.pool) found.added = step.pool->added;
  for (std::size_t k = i; k-- > 0 && found.hit_step < 0;) {
    const engine::StepHead head = run.steps.head(k);
    if (!head.has_pool || head.n_accepted == 0) continue;
    for (PoolCandidate& candidate : candidates_of(run.steps[k])) {
      if (candidate.n_accepted == 0) continue;
      found.hit_step = head.begun.step;
      found.hit = std::move(candidate);
      break;
    }
  }
  return found;
}

const PoolState::Rows& rows_in_view(PoolState& pool,
                                    PoolOrder order,
                                    const std::string& filter,
                                    const TextOfNgram& text_of,
                                    std::size_t limit) {
  PoolState::Rows& rows = pool.rows;
  if (rows.ready && rows.order == order && rows.filter == filter) return rows;
  rows = {.ready = true, .order = order, .filter = filter};
  for (const auto& [key, entry] : pool.entries) {
    if (!filter.empty() && !found_in(text_of(entry.ngram), filter)) continue;
    rows.entries.push_back(&entry);
    ++rows.n_by_first[entry.ngram.first];
  }
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

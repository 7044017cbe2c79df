// The n-gram pool at the playhead, rebuilt from what was added, evicted and tried.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace ui {

struct PoolEntry {
  engine::PoolNgram ngram;
  engine::StepId last_tried = -1, last_hit = -1;  // -1: never
};

/// An n-gram that a step put to the test, and what became of it there.
struct PoolCandidate {
  engine::PoolNgram ngram;
  /// Rows of the step's tree, in order: its first token's continuation as far as it was evaluated.
  std::vector<int> rows;
  int n_accepted = 0;  // of those, from the first
};
/// Candidates of one step, as the pool gave them.
std::vector<PoolCandidate> candidates_of(const engine::StepRecord& step);
/// The cells of the step's window that an n-gram was read from, first token first, as rows of the
/// step's tree (its last token is the target's answer to the last of them). Empty: it was read from
/// the text.
std::vector<int> birth_rows(const engine::StepRecord& step, const engine::PoolNgram& ngram);

enum class PoolOrder { Newest, Hits, Tries, First };

/// Going forward takes over the new steps alone; going back starts over.
struct PoolState {
  engine::RunId run = 0;
  std::size_t n_steps = 0;
  std::map<std::pair<engine::TokenId, std::vector<engine::TokenId>>, PoolEntry> entries;
  int n_keys = 0, n_ngrams = 0;  // as the engine last said

  /// The rows last asked for, until the entries change.
  struct Rows {
    bool ready = false;
    PoolOrder order = PoolOrder::Newest;
    std::string filter;
    std::vector<const PoolEntry*> entries;
    std::size_t n_found = 0;  // before the limit
    /// Of those found, how many begin with a token.
    std::map<engine::TokenId, int> n_by_first;
  } rows;
};
void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps);

/// An n-gram as the person reads it.
using TextOfNgram = std::function<std::string(const engine::PoolNgram&)>;
/// Entries whose text holds `filter` (any, if it is empty), in the order wanted, at most `limit`.
const PoolState::Rows& rows_in_view(PoolState& pool,
                                    PoolOrder order,
                                    const std::string& filter,
                                    const TextOfNgram& text_of,
                                    std::size_t limit);

}  // namespace ui

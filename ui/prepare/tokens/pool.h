// The n-gram pool at the playhead, reconstructed from the n-grams added, evicted and tried.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/event/timeline/step_store.h"
#include "ui/prepare/tokens/pool_order.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// An n-gram of the pool.
struct PoolEntry {
  engine::PoolNgram ngram;
  engine::StepId last_tried = -1, last_hit = -1;  // steps; -1: never
};

/// An n-gram that a step proposed, and its result.
struct PoolCandidate {
  engine::PoolNgram ngram;
  /// The rows of the step's tree that hold the n-gram's tokens from the second on. Rows that were
  /// not computed are left out.
  std::vector<int> rows;
  int n_accepted = 0;  // number of leading rows that were accepted
};
/// Returns the candidates of a step, in the order of the pool.
std::vector<PoolCandidate> candidates_of(const engine::StepRecord& step);
/// A branch of the guesses that a step copied from texts.
struct CopiedPath {
  std::vector<int> rows;  // of the step's tree, from the first guess to a leaf
  int n_accepted = 0;     // number of leading rows that were accepted
};
/// Returns the branches in the order of their last rows.
std::vector<CopiedPath> copied_paths(const engine::StepRecord& step);
/// Returns the window cells from which an n-gram was read, as rows of the step's tree in the order of
/// tokens. The last token of the n-gram is the target's choice after the last cell. Empty if the
/// n-gram was read from the text.
std::vector<int> source_rows(const engine::StepRecord& step, const engine::PoolNgram& ngram);

/// The n-grams of a pool, by their first token and the others.
using PoolEntries = std::map<std::pair<engine::TokenId, std::vector<engine::TokenId>>, PoolEntry>;

/// The pool after a number of steps; advance() updates it.
struct PoolState {
  engine::RunId run = 0;
  std::size_t n_steps = 0;
  PoolEntries entries;
  int n_keys = 0, n_ngrams = 0;  // sizes that the decoder reported last
  std::size_t most_tried = 0;    // the most candidates of one step, of all steps read so far

  /// Packed copies of the entries, by number of steps, so that a jump back does not begin with step 0.
  std::map<std::size_t, std::vector<std::int32_t>> saved;
  std::size_t saved_bytes = 0, most_saved_bytes = std::size_t{32} << 20;
  std::size_t saved_every = 128;  // steps between two copies

  /// The last result of rows_in_view().
  struct Rows {
    bool ready = false;
    PoolOrder order = PoolOrder::Newest;
    std::string filter;
    std::vector<const PoolEntry*> entries;
    std::size_t n_found = 0;  // number of matching entries, without the limit
    /// The number of n-grams found, by their first token.
    std::map<engine::TokenId, int> n_by_first;
  } rows;
};
/// Updates the pool to `n_steps` steps of the run.
void advance(PoolState& pool, const engine::RunRecord& run, std::size_t n_steps);

/// The pool at a step that verified no n-gram.
struct PoolWithoutCandidates {
  std::string why;                       // a sentence: why the step verified none
  std::vector<engine::PoolNgram> added;  // n-grams that the step added
  // the last earlier step that accepted a token of an n-gram; -1: none
  engine::StepId hit_step = -1;
  PoolCandidate hit;  // that n-gram
};
/// Describes the pool at step `i` of the run, which has no candidates.
/// @param pool        the pool after this step or later ones
/// @param last_token  the text of the last token before the step
PoolWithoutCandidates pool_without_candidates(const PoolState& pool,
                                              const engine::RunRecord& run,
                                              std::size_t i,
                                              const std::string& last_token);

/// Returns the text of an n-gram.
using TextOfNgram = std::function<std::string(const engine::PoolNgram&)>;
/// Returns the entries whose text contains `filter`, in an order, at most `limit`.
const PoolState::Rows& rows_in_view(PoolState& pool,
                                    PoolOrder order,
                                    const std::string& filter,
                                    const TextOfNgram& text_of,
                                    std::size_t limit);

}  // namespace ui

// Lookahead's n-gram pool: n-grams from the window, the prompt and the emitted text, grouped by
// their first token (the key). Each key keeps a few, in the order of their last use.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/types.h"
#include "engine/event/event.h"

namespace engine {

/// The pool, with its changes for the event stream.
class NgramPool {
 public:
  /// @param n_rest        the largest number of tokens after the first token of an n-gram
  /// @param max_per_key   n-grams kept per first token; 0: keeps none
  NgramPool(int n_rest, int max_per_key);

  /// The n-grams that begin with `first`, least recently inserted first. Valid until the next
  /// insert.
  std::span<const PoolNgram> find(TokenId first) const;
  /// Inserts an n-gram. A known one becomes the most recent of its key; a full key evicts its
  /// oldest (LRU). An n-gram that was evicted since the last take_changes() gets its old counters
  /// back. A prefix of a kept n-gram counts as known, and a longer n-gram replaces its kept prefix.
  /// @param rest  [1..n_rest] the tokens after the first
  /// @param born  the step it was seen in, or a code of PoolNgram::born
  void insert(TokenId first, std::span<const TokenId> rest, StepId born);
  /// Counts a verification of an n-gram.
  /// @param hit  true if at least one of its tokens was accepted
  void count_try(TokenId first, std::span<const TokenId> rest, bool hit);

  /// Number of first tokens with n-grams.
  int n_keys() const { return static_cast<int>(keys_.size()); }
  /// Number of n-grams.
  int n_ngrams() const { return n_ngrams_; }
  /// The n-grams added, tried and evicted since the last call, to be applied in this order. The
  /// caller sets run, step and time.
  PoolChanged take_changes();
  /// Replaces the pending changes by one list of added n-grams: those in the pool now. Called after
  /// the prompt, whose evictions are not displayed.
  void collapse_changes();

 private:
  PoolNgram* entry(TokenId first, std::span<const TokenId> rest);

  std::size_t n_rest_;
  std::size_t max_per_key_;
  int n_ngrams_ = 0;
  std::unordered_map<TokenId, std::vector<PoolNgram>> keys_;
  PoolChanged changes_;
};

}  // namespace engine

// N-grams seen in Lookahead's window, the prompt and the text, by their first token; a few of each
// key, least recently used first.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/event/event.h"
#include "engine/base/types.h"

namespace engine {

class NgramPool {
 public:
  /// @param n_rest        tokens of an n-gram behind its first, at most
  /// @param max_per_key   n-grams kept of one first token; 0: keeps nothing
  NgramPool(int n_rest, int max_per_key);

  /// N-grams that begin with `first`, least recently inserted first. Valid until the next insert.
  std::span<const PoolNgram> find(TokenId first) const;
  /// Keeps an n-gram; one that is there already becomes the most recent of its key, a full key
  /// loses its oldest. One that was evicted since the last take_changes() comes back as it was. A
  /// shorter one is there already where a longer begins with it, and makes room for the longer.
  /// @param rest  [1..n_rest]
  /// @param born  step it was seen in, -1: in the prompt
  void insert(TokenId first, std::span<const TokenId> rest, StepId born);
  /// Counts a verification of an n-gram, and whether it gave at least one token.
  void count_try(TokenId first, std::span<const TokenId> rest, bool hit);

  int n_keys() const { return static_cast<int>(keys_.size()); }
  int n_ngrams() const { return n_ngrams_; }
  /// What was added, tried and evicted since the last call, to be applied in this order; run, step
  /// and time are left open.
  PoolChanged take_changes();
  /// Tells what is in the pool as added and nothing as evicted: after a prompt was read, what it
  /// pushed out again is no news.
  void settle_changes();

 private:
  PoolNgram* entry(TokenId first, std::span<const TokenId> rest);

  std::size_t n_rest_;
  std::size_t max_per_key_;
  int n_ngrams_ = 0;
  std::unordered_map<TokenId, std::vector<PoolNgram>> keys_;
  PoolChanged changes_;
};

}  // namespace engine

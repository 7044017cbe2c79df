// A cache of encoded k-grams, keyed by their tokens. It evicts the least recently used entry.
#pragma once

#include <list>
#include <map>
#include <span>
#include <vector>

#include "engine/model/draft_heads.h"

namespace engine {

/// The cache of one sequence, or of several after one another.
class GramCache {
 public:
  /// @param capacity  largest number of entries; 0: keeps nothing
  explicit GramCache(int capacity) : capacity_(capacity) {}

  /// The vector of a k-gram, or an empty span. Marks the entry as most recently used. Valid until put().
  std::span<const float> find(std::span<const TokenId> gram);
  /// Adds a k-gram. If the cache is full, this evicts another one.
  void put(std::span<const TokenId> gram, std::span<const float> encoded);
  /// Largest number of entries.
  int capacity() const { return capacity_; }
  /// Number of entries.
  int size() const { return static_cast<int>(entries_.size()); }
  /// Statistics of this cache.
  const GramCounts& counts() const { return counts_; }

 private:
  struct Entry {
    std::vector<TokenId> gram;
    std::vector<float> encoded;
  };
  int capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::map<std::vector<TokenId>, std::list<Entry>::iterator> by_gram_;
  GramCounts counts_;
};

}  // namespace engine

// Encoded k-grams by their tokens: so many of them, the least recently used goes first.
#pragma once

#include <list>
#include <map>
#include <span>
#include <vector>

#include "engine/model/draft_heads.h"

namespace engine {

class GramCache {
 public:
  /// @param capacity  0: nothing is kept
  explicit GramCache(int capacity) : capacity_(capacity) {}

  /// The k-gram's vector, now the most recently used, or an empty span. It stays until put().
  std::span<const float> find(std::span<const TokenId> gram);
  void put(std::span<const TokenId> gram, std::span<const float> encoded);
  int size() const { return static_cast<int>(entries_.size()); }
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

#include "engine/model/gram_cache.h"

namespace engine {

std::span<const float> GramCache::find(std::span<const TokenId> gram) {
  counts_.n_looked_up++;
  const auto at = by_gram_.find({gram.begin(), gram.end()});
  if (at == by_gram_.end()) return {};
  counts_.n_found++;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->encoded;
}

void GramCache::put(std::span<const TokenId> gram, std::span<const float> encoded) {
  const std::vector<TokenId> key(gram.begin(), gram.end());
  if (capacity_ == 0 || by_gram_.contains(key)) return;
  if (size() == capacity_) {
    by_gram_.erase(entries_.back().gram);
    entries_.pop_back();
    counts_.n_evicted++;
  }
  entries_.push_front({key, {encoded.begin(), encoded.end()}});
  by_gram_[key] = entries_.begin();
}

}  // namespace engine

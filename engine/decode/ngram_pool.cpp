#include "engine/decode/ngram_pool.h"

#include <algorithm>
#include <utility>

namespace engine {

NgramPool::NgramPool(int n_rest, int max_per_key)
    : n_rest_(static_cast<std::size_t>(n_rest)),
      max_per_key_(static_cast<std::size_t>(max_per_key)) {
  ensure(n_rest >= 1 && max_per_key >= 0, "an n-gram has at least two tokens");
}

std::span<const PoolNgram> NgramPool::find(TokenId first) const {
  const auto found = keys_.find(first);
  if (found == keys_.end()) return {};
  return found->second;
}

PoolNgram* NgramPool::entry(TokenId first, std::span<const TokenId> rest) {
  const auto found = keys_.find(first);
  if (found == keys_.end()) return nullptr;
  for (PoolNgram& ngram : found->second) {
    if (std::ranges::equal(ngram.rest, rest)) return &ngram;
  }
  return nullptr;
}

void NgramPool::insert(TokenId first, std::span<const TokenId> rest, StepId born) {
  ensure(rest.size() == n_rest_, "an n-gram of another size than the pool's");
  if (max_per_key_ == 0) return;
  std::vector<PoolNgram>& ngrams = keys_[first];
  if (PoolNgram* known = entry(first, rest)) {
    std::rotate(ngrams.begin() + (known - ngrams.data()),
                ngrams.begin() + (known - ngrams.data()) + 1, ngrams.end());
    return;
  }
  if (ngrams.size() == max_per_key_) {
    changes_.evicted.push_back(std::move(ngrams.front()));
    ngrams.erase(ngrams.begin());
    n_ngrams_--;
  }
  ngrams.push_back(PoolNgram{first, {rest.begin(), rest.end()}, born, 0, 0});
  changes_.added.push_back(ngrams.back());
  n_ngrams_++;
}

void NgramPool::count_try(TokenId first, std::span<const TokenId> rest, bool hit) {
  PoolNgram* ngram = entry(first, rest);
  ensure(ngram != nullptr, "an n-gram was tried that is not in the pool");
  ngram->n_tries++;
  ngram->n_hits += hit;
  changes_.tried.push_back(*ngram);
}

PoolChanged NgramPool::take_changes() {
  PoolChanged changes = std::exchange(changes_, {});
  changes.n_keys = n_keys();
  changes.n_ngrams = n_ngrams_;
  return changes;
}

}  // namespace engine

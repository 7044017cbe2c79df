#include "engine/decode/guess/ngram_pool.h"

#include <algorithm>
#include <set>
#include <utility>

namespace engine {
namespace {

bool begins_with(std::span<const TokenId> tokens, std::span<const TokenId> beginning) {
  return tokens.size() >= beginning.size() &&
         std::ranges::equal(tokens.first(beginning.size()), beginning);
}

}  // namespace

NgramPool::NgramPool(int n_rest, int max_per_key)
    : n_rest_(static_cast<std::size_t>(n_rest)),
      max_per_key_(static_cast<std::size_t>(max_per_key)) {
  ensure(n_rest >= 1 && max_per_key >= 0, "an n-gram must have at least two tokens");
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
  ensure(!rest.empty() && rest.size() <= n_rest_,
         "an n-gram must have two tokens at least and the pool's ngram_size at most");
  if (max_per_key_ == 0) return;
  std::vector<PoolNgram>& ngrams = keys_[first];
  // The most recent n-gram with this beginning; among n-grams of one size there is at most one.
  const auto known =
      std::ranges::find_if(ngrams.rbegin(), ngrams.rend(),
                           [&](const PoolNgram& kept) { return begins_with(kept.rest, rest); });
  if (known != ngrams.rend()) {
    std::rotate(known.base() - 1, known.base(), ngrams.end());
    return;
  }
  const auto begun = std::ranges::find_if(
      ngrams, [&](const PoolNgram& kept) { return begins_with(rest, kept.rest); });
  // Searches the evicted n-grams before evicting another one, because a returning n-gram must not
  // evict itself. Skips the search for n-grams of the prompt: they are many, and their evictions
  // are dropped anyway.
  const auto same = [&](const PoolNgram& ngram) {
    return born != kBornInPrompt && ngram.first == first && std::ranges::equal(ngram.rest, rest);
  };
  const auto gone = std::ranges::find_if(changes_.evicted, same);
  const bool returns = gone != changes_.evicted.end();
  PoolNgram ngram{first, {rest.begin(), rest.end()}, born, 0, 0};
  if (returns) {
    ngram = std::move(*gone);
    changes_.evicted.erase(gone);
  } else {
    changes_.added.push_back(ngram);
  }
  if (begun != ngrams.end() || ngrams.size() == max_per_key_) {
    const auto leaves = begun != ngrams.end() ? begun : ngrams.begin();
    changes_.evicted.push_back(std::move(*leaves));
    ngrams.erase(leaves);
    n_ngrams_--;
  }
  ngrams.push_back(std::move(ngram));
  n_ngrams_++;
}

void NgramPool::collapse_changes() {
  std::set<std::pair<TokenId, std::vector<TokenId>>> seen;
  std::erase_if(changes_.added, [&](const PoolNgram& ngram) {
    return entry(ngram.first, ngram.rest) == nullptr ||
           !seen.insert({ngram.first, ngram.rest}).second;
  });
  changes_.evicted.clear();
}

void NgramPool::count_try(TokenId first, std::span<const TokenId> rest, bool hit) {
  PoolNgram* ngram = entry(first, rest);
  ensure(ngram != nullptr, "the n-gram is not in the pool");
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

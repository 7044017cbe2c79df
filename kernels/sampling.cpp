#include "kernels/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>

#include "kernels/error.h"

namespace kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void penalise(const PickRow& row, int n_valid, std::vector<float>& logits) {
  if (row.repetition_penalty == 1 || row.n_history == 0) return;
  std::vector<std::int32_t> seen(row.history, row.history + row.n_history);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const std::int32_t id : seen) {
    if (id < 0 || id >= n_valid) continue;
    float& logit = logits[id];
    logit = logit < 0 ? logit * row.repetition_penalty : logit / row.repetition_penalty;
  }
}

// The tokens in the order of kernels/sampling.h. They are sorted on demand, because a filter
// usually needs only a few of many tokens.
class Order {
 public:
  Order(const std::vector<float>& logits) : logits_(logits), ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
  }
  int operator[](std::size_t i) {
    while (i >= n_sorted_) {
      const auto before = [this](int a, int b) {
        return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
      };
      const std::size_t upto = std::min(ids_.size(), std::max<std::size_t>(256, 8 * n_sorted_));
      if (upto < ids_.size())
        std::nth_element(ids_.begin() + n_sorted_, ids_.begin() + upto, ids_.end(), before);
      std::sort(ids_.begin() + n_sorted_, ids_.begin() + upto, before);
      n_sorted_ = upto;
    }
    return ids_[i];
  }
  std::size_t size() const { return ids_.size(); }

 private:
  const std::vector<float>& logits_;
  std::vector<int> ids_;
  std::size_t n_sorted_ = 0;
};

double weight(float logit, float top, float temperature) {
  return std::exp((static_cast<double>(logit) - top) / temperature);
}

// How many tokens of the order top-k and top-p keep.
std::size_t kept_by_order(Order& order, const std::vector<float>& logits, const PickRow& row) {
  const bool by_k = row.top_k > 0 && static_cast<std::size_t>(row.top_k) < order.size();
  std::size_t n = by_k ? row.top_k : order.size();
  if (row.top_p >= 1) return n;
  const float top = logits[order[0]];
  double total = 0;
  if (by_k) {
    for (std::size_t i = 0; i < n; i++) total += weight(logits[order[i]], top, row.temperature);
  } else {
    for (const float logit : logits) total += weight(logit, top, row.temperature);
  }
  const double wanted = static_cast<double>(row.top_p) * total;
  double sum = 0;
  for (std::size_t i = 0; i < n; i++) {
    sum += weight(logits[order[i]], top, row.temperature);
    if (sum >= wanted) return i + 1;
  }
  return n;
}

}  // namespace

int first_bad_logit(std::span<const float> logits, int n_valid) {
  for (int i = 0; i < n_valid; i++)
    if (!(logits[i] < std::numeric_limits<float>::infinity())) return i;
  return -1;
}

bool filter_logits(std::span<const float> logits,
                   int n_valid,
                   const PickRow& row,
                   std::vector<float>& kept) {
  ensure(n_valid > 0 && static_cast<std::size_t>(n_valid) <= logits.size(),
         "filter_logits: n_valid must be 1 to the vocabulary size");
  if (first_bad_logit(logits, n_valid) >= 0) return false;
  kept.assign(logits.begin(), logits.begin() + n_valid);
  penalise(row, n_valid, kept);
  const float top = *std::max_element(kept.begin(), kept.end());
  if (!std::isfinite(top)) return false;
  if (row.temperature < kGreedyTemperature) return true;

  const bool cuts = (row.top_k > 0 && row.top_k < n_valid) || row.top_p < 1;
  if (cuts) {
    Order order(kept);
    const std::size_t n = kept_by_order(order, kept, row);
    if (n < kept.size()) {
      std::vector<float> cut(kept.size(), kMinusInfinity);
      for (std::size_t i = 0; i < n; i++) cut[order[i]] = kept[order[i]];
      kept.swap(cut);
    }
  }
  if (row.min_p > 0) {
    for (float& logit : kept)
      if (weight(logit, top, row.temperature) < row.min_p && logit != top) logit = kMinusInfinity;
  }
  return true;
}

Ranking rank_logits(std::span<const float> logits,
                    int n_valid,
                    const PickRow& row,
                    std::span<RankedToken> tokens) {
  Ranking ranking;
  std::vector<float> kept;
  if (!filter_logits(logits, n_valid, row, kept)) {
    ranking.bad_index = first_bad_logit(logits, n_valid);
    return ranking;
  }
  const float top = *std::max_element(kept.begin(), kept.end());
  const float temperature = row.temperature < kGreedyTemperature ? 1 : row.temperature;
  for (const float logit : kept) ranking.sum += weight(logit, top, temperature);
  std::vector<int> ids(std::min(tokens.size(), kept.size()));
  const auto before = [&kept](int a, int b) {
    return kept[a] != kept[b] ? kept[a] > kept[b] : a < b;
  };
  std::ranges::partial_sort_copy(std::views::iota(0, n_valid), ids, before);
  for (const int id : ids) {
    if (kept[id] == kMinusInfinity) break;
    tokens[ranking.n++] = {id, kept[id]};
  }
  return ranking;
}

double probability_of(const RankedToken& token,
                      float best,
                      const Ranking& distribution,
                      float temperature) {
  return weight(token.logit, best, temperature < kGreedyTemperature ? 1 : temperature) /
         distribution.sum;
}

std::vector<double> filtered_distribution(std::span<const float> logits,
                                          int n_valid,
                                          const PickRow& row) {
  std::vector<float> kept;
  if (!filter_logits(logits, n_valid, row, kept)) return {};
  std::vector<double> distribution(logits.size(), 0);
  const auto best = std::max_element(kept.begin(), kept.end());
  if (row.temperature < kGreedyTemperature) {
    distribution[best - kept.begin()] = 1;
    return distribution;
  }
  double total = 0;
  for (int i = 0; i < n_valid; i++)
    total += distribution[i] = weight(kept[i], *best, row.temperature);
  for (double& p : distribution) p /= total;
  return distribution;
}

}  // namespace kernels

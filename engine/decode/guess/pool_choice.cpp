#include "engine/decode/guess/pool_choice.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace engine {
namespace {

// The tokens per row of the window before measurements, and the number of rows that this assumption
// weighs as much as.
constexpr double kWindowPrior = 0.03, kWindowPriorRows = 150;
constexpr double kFade = 0.997;  // weight of the window's earlier steps, per step

/// Tokens of the n-gram that equal the emitted ones.
std::size_t n_right(const FoundNgram& found, std::span<const TokenId> emitted) {
  const auto& rest = found.ngram->rest;
  return static_cast<std::size_t>(std::ranges::mismatch(rest, emitted).in1 - rest.begin());
}

/// The probability that at least one of two n-grams with the same token is right.
double either(double a, double b) {
  return a + b - a * b;
}

}  // namespace

PoolKnowledge::PoolKnowledge() {
  constexpr double kFirst[kStates] = {0.15, 0.06, 0.35};
  for (std::size_t source = 0; source < 2; source++) {
    const double factor = source == 0 ? 1 : 0.5;
    for (std::size_t rank = 0; rank < kRanks; rank++)
      for (std::size_t state = 0; state < kStates; state++)
        first_[source][rank][state] = Rate(factor * kFirst[state] * (rank == 0 ? 1.2 : 0.8));
    for (Rate& rate : next_[source]) rate = Rate(0.5);
  }
  for (auto& buckets : corrected_)
    for (std::size_t b = 0; b < kBuckets; b++)
      buckets[b] = Rate((static_cast<double>(b) + 0.5) / kBuckets);
}

Rate& PoolKnowledge::corrected(const PoolNode& node) {
  const auto bucket = std::min(static_cast<std::size_t>(node.alone * kBuckets), kBuckets - 1);
  return corrected_[node.depth > 0][bucket];
}

Rate& PoolKnowledge::first(const FoundNgram& found, std::size_t rank) {
  const PoolNgram& ngram = *found.ngram;
  const std::size_t state = ngram.n_hits > 0 ? 2 : ngram.n_tries > 0 ? 1 : 0;
  return first_[found.from_window][std::min(rank, kRanks - 1)][state];
}

Rate& PoolKnowledge::next(const FoundNgram& found, std::size_t depth) {
  return next_[found.from_window][std::min(depth, kDepths - 1)];
}

std::vector<PoolNode> PoolKnowledge::nodes(std::span<const FoundNgram> found, int depth) {
  std::vector<PoolNode> nodes;  // with the probability that the token is right after its parent
  const auto child = [&nodes](int parent, TokenId token) {
    return std::ranges::find_if(
        nodes, [&](const PoolNode& n) { return n.parent == parent && n.token == token; });
  };
  for (std::size_t rank = 0; rank < found.size(); rank++) {
    const std::size_t place = found.size() - 1 - rank;
    const auto& rest = found[place].ngram->rest;
    int parent = -1;
    for (std::size_t j = 0; j < rest.size() && static_cast<int>(j) < depth; j++) {
      const Rate& rate = j == 0 ? first(found[place], rank) : next(found[place], j);
      auto node = child(parent, rest[j]);
      if (node == nodes.end()) {
        nodes.push_back({parent, rest[j], static_cast<int>(place), static_cast<int>(j)});
        node = nodes.end() - 1;
      }
      node->alone = either(node->alone, rate.mean());
      parent = static_cast<int>(node - nodes.begin());
    }
  }
  for (PoolNode& node : nodes) {
    const double above = node.parent < 0 ? 1 : nodes[static_cast<std::size_t>(node.parent)].right;
    node.right = above * corrected(node).mean();
  }
  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&nodes](int i) { return nodes[static_cast<std::size_t>(i)].right; });
  std::vector<int> place_of(nodes.size());
  std::vector<PoolNode> sorted;
  for (const int i : order) {
    place_of[static_cast<std::size_t>(i)] = static_cast<int>(sorted.size());
    sorted.push_back(nodes[static_cast<std::size_t>(i)]);
    int& parent = sorted.back().parent;
    if (parent >= 0) parent = place_of[static_cast<std::size_t>(parent)];
  }
  return sorted;
}

/// Counts the nodes that follow a right parent.
void PoolKnowledge::learn_nodes(std::span<const FoundNgram> found,
                                std::span<const TokenId> emitted) {
  const std::vector<PoolNode> all = nodes(found, static_cast<int>(emitted.size()));
  int parent = -1, next = -1;
  for (std::size_t i = 0; i < emitted.size() && (i == 0 || next >= 0); i++) {
    parent = std::exchange(next, -1);
    for (std::size_t n = 0; n < all.size(); n++) {
      if (all[n].parent != parent) continue;
      corrected(all[n]).add(all[n].token == emitted[i]);
      if (all[n].token == emitted[i]) next = static_cast<int>(n);
    }
  }
}

void PoolKnowledge::learn(std::span<const FoundNgram> found, std::span<const TokenId> emitted) {
  learn_nodes(found, emitted);
  std::size_t best[2] = {0, 0};  // of the text's and of the window's n-grams
  for (std::size_t rank = 0; rank < found.size(); rank++) {
    const FoundNgram& one = found[found.size() - 1 - rank];
    const std::size_t right = n_right(one, emitted);
    const std::size_t n_known = std::min(one.ngram->rest.size(), emitted.size());
    first(one, rank).add(right > 0);
    for (std::size_t j = 1; j < n_known && j <= right; j++) next(one, j).add(j < right);
    // The last emitted token is the target's own, so no guess yielded it.
    best[one.from_window] = std::max(best[one.from_window], std::min(right, emitted.size() - 1));
  }
  if (best[1] > best[0]) window_tokens_ += static_cast<double>(best[1] - best[0]);
}

void PoolKnowledge::came(int window_rows, int n_tokens, double plain_share) {
  for (auto& buckets : corrected_)
    for (Rate& rate : buckets) rate.fade();
  for (auto& ranks : first_)
    for (auto& states : ranks)
      for (Rate& rate : states) rate.fade();
  for (auto& rates : next_)
    for (Rate& rate : rates) rate.fade();
  window_rows_ = kFade * window_rows_ + window_rows;
  window_tokens_ *= kFade;
  chooser.came(n_tokens, plain_share);
}

double PoolKnowledge::tokens_per_window_row() const {
  return (window_tokens_ + kWindowPrior * kWindowPriorRows) / (window_rows_ + kWindowPriorRows);
}

int PoolKnowledge::choose_columns(int most,
                                  int n_levels,
                                  int n_other,
                                  const StepControl& control) const {
  const double token_ms = control.ms(1) / chooser.rate();  // that a token takes
  int best = 0;
  double gain = 0;
  for (int n = 1; n <= most; n++) {
    const int rows = n * n_levels - 1;  // the last token's row is the first column's
    const double more_ms = control.ms(n_other + rows) - control.ms(n_other);
    const double g = tokens_per_window_row() * rows - more_ms / token_ms;
    if (g > gain) gain = g, best = n;
  }
  return best;
}

}  // namespace engine

#include "engine/decode/guess/suffix_draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace engine {
namespace {

/// Sums of equal probabilities in another order differ by less. On a tie the longer match is used.
constexpr double kScoreError = 1e-9;
/// Suffixes that are tried, from the longest.
constexpr int kMaxSuffixes = 16;

/// A token that can join the tree below a node.
struct Candidate {
  SuffixDraftNode node;
  int depth = 0;
};

/// True if `a` joins the tree after `b`. The state number makes the order strict.
bool joins_later(const Candidate& a, const Candidate& b) {
  if (a.node.p != b.node.p) return a.node.p < b.node.p;
  if (a.depth != b.depth) return a.depth > b.depth;
  return a.node.state > b.node.state;
}

class Growth {
 public:
  Growth(const SuffixAutomaton& texts, const SuffixDraftLimits& limits)
      : texts_(texts), limits_(limits) {}

  SuffixDraft grow(int state, int length) {
    const double most = std::floor(limits_.factor * length + 1e-9);
    const auto n = static_cast<std::size_t>(std::min<double>(limits_.max_tokens, most));
    SuffixDraft draft;
    draft.match_length = length;
    add_followers(-1, state, 1, 1);
    while (draft.nodes.size() < n && !open_.empty()) {
      std::ranges::pop_heap(open_, joins_later);
      const Candidate best = open_.back();
      open_.pop_back();
      const auto index = static_cast<int>(draft.nodes.size());
      draft.nodes.push_back(best.node);
      draft.score += best.node.p;
      if (limits_.chain) open_.clear();
      add_followers(index, best.node.state, best.node.p, best.depth + 1);
    }
    return draft;
  }

 private:
  void add_followers(int parent, int state, double p, int depth) {
    if (depth > limits_.max_depth) return;
    // At the end of a text nothing has followed the whole string: shorter suffixes continue it.
    int n_context = n_followers(state);
    while (n_context == 0 && state != 0) {
      state = texts_.shorter(state);
      n_context = n_followers(state);
    }
    if (state == 0) return;
    texts_.for_each_next(state, [&](TokenId token, int to) {
      add({.token = token,
           .parent = parent,
           .state = to,
           .n_seen = texts_.count(to),
           .n_context = n_context,
           .p = p * texts_.count(to) / n_context},
          depth);
    });
  }

  int n_followers(int state) const {
    int n = 0;
    if (state != 0) texts_.for_each_next(state, [&](TokenId, int to) { n += texts_.count(to); });
    return n;
  }

  void add(const SuffixDraftNode& node, int depth) {
    if (node.p < limits_.min_p ||
        std::ranges::find(limits_.never, node.token) != limits_.never.end())
      return;
    open_.push_back({node, depth});
    std::ranges::push_heap(open_, joins_later);
  }

  const SuffixAutomaton& texts_;
  const SuffixDraftLimits& limits_;
  std::vector<Candidate> open_;  // a heap
};

}  // namespace

std::span<const TokenId> searched_end(std::span<const TokenId> tokens) {
  return tokens.last(std::min<std::size_t>(tokens.size(), 64));
}

std::vector<std::vector<TokenId>> paths_of(const SuffixDraft& draft) {
  std::vector<bool> is_leaf(draft.nodes.size(), true);
  for (const SuffixDraftNode& node : draft.nodes)
    if (node.parent >= 0) is_leaf[static_cast<std::size_t>(node.parent)] = false;
  std::vector<std::pair<int, std::vector<TokenId>>> paths;  // by the first node, which are ordered
  for (std::size_t leaf = 0; leaf < draft.nodes.size(); leaf++) {
    if (!is_leaf[leaf]) continue;
    std::vector<TokenId> tokens;
    int first = 0;
    for (int node = static_cast<int>(leaf); node >= 0;
         node = draft.nodes[static_cast<std::size_t>(node)].parent) {
      tokens.insert(tokens.begin(), draft.nodes[static_cast<std::size_t>(node)].token);
      first = node;
    }
    paths.emplace_back(first, std::move(tokens));
  }
  std::ranges::stable_sort(paths, {}, &std::pair<int, std::vector<TokenId>>::first);
  std::vector<std::vector<TokenId>> all;
  for (auto& [first, tokens] : paths) all.push_back(std::move(tokens));
  return all;
}

SuffixDraft suffix_draft(const SuffixAutomaton& texts,
                         SuffixAutomaton::Match match,
                         const SuffixDraftLimits& limits) {
  SuffixDraft best;
  for (int n = 0; match.length > 0 && n < kMaxSuffixes; n++) {
    SuffixDraft draft = Growth(texts, limits).grow(match.state, match.length);
    if (draft.score > best.score + kScoreError) best = std::move(draft);
    match.state = texts.shorter(match.state);
    match.length = texts.length(match.state);
  }
  return best;
}

}  // namespace engine

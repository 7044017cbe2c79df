// Chooses the tokens to guess from the continuations that a source knows: texts with the same suffix
// (suffix_choice.h) or a table of successors (successor_choice.h). Our addition, for sizes on "auto".
//   right  the probability of a candidate is the share of earlier candidates of its class that were
//          right; the source defines the classes
//   tree   the likeliest candidates, by the product of the probabilities on their paths
//   size   as many as are worth the time of their rows
// An emitted token shows which candidates were right, verified or not. So the shares are learned at no
// cost, even in steps without guesses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/types.h"
#include "engine/decode/control/rate.h"
#include "engine/decode/control/size_choice.h"

namespace engine {

/// A token that may follow a node of the tree. Sources derive their own.
struct LikelyToken {
  TokenId token = 0;
  int parent = -1;           // its index among the nodes; -1: the token follows the sequence
  int depth = 0;             // from 0
  std::size_t category = 0;  // its class
  double right = 0;          // probability that the path up to the token is right
  int place = -1;            // its index among the nodes; -1: not in the tree
};

/// A tree that grows by its likeliest candidate.
template <class Token>
class LikelyTree {
 public:
  /// @param chain  every node has at most one child
  explicit LikelyTree(bool chain = false) : chain_(chain) {}

  /// Adds candidates that follow one node.
  /// @param most   keeps at most this many of them, the likeliest
  /// @param least  a candidate joins the tree only with at least this probability
  void offer(std::vector<Token> found, std::size_t most, double least) {
    std::ranges::stable_sort(found, std::greater(), &Token::right);
    found.resize(std::min(found.size(), most));
    for (const Token& one : found) {
      candidates_.push_back(one);
      if (one.right < least) continue;
      open_.push_back(candidates_.size() - 1);
      std::ranges::push_heap(open_, later());
    }
  }
  /// True if no candidate is left that can join the tree.
  bool is_complete() const { return open_.empty(); }
  /// Moves the likeliest candidate to the tree, which must not be complete. The reference is valid
  /// until the next offer().
  const Token& take_best() {
    std::ranges::pop_heap(open_, later());
    Token& best = candidates_[open_.back()];
    best.place = n_nodes();
    nodes_.push_back(open_.back());
    open_.pop_back();
    if (chain_) open_.clear();
    return best;
  }

  /// All candidates. Those in the tree are its nodes, likeliest first, so parents come before their
  /// children.
  const std::vector<Token>& candidates() const { return candidates_; }
  const Token& node(int index) const {
    return candidates_[nodes_[static_cast<std::size_t>(index)]];
  }
  int n_nodes() const { return static_cast<int>(nodes_.size()); }

 private:
  /// The order of the heap; the index makes it strict.
  auto later() const {
    return [this](std::size_t a, std::size_t b) {
      const double p = candidates_[a].right, q = candidates_[b].right;
      return p != q ? p < q : a > b;
    };
  }

  bool chain_;
  std::vector<Token> candidates_;
  std::vector<std::size_t> nodes_;
  std::vector<std::size_t> open_;  // a heap
};

/// Statistics about the success of a source's candidates.
class LikelyKnowledge : public Learned {
 public:
  /// @param priors  [classes] the probabilities before observations
  explicit LikelyKnowledge(std::span<const double> priors);

  /// The probability that a candidate of this class is right after a right parent.
  double right(std::size_t category) const { return rates_[category].mean(); }
  /// Chooses how many nodes of the tree, likeliest first, a step verifies.
  template <class Token>
  SizeDecision choose(const LikelyTree<Token>& tree, ControlUse& control) {
    std::vector<double> right;
    for (int node = 0; node < tree.n_nodes(); node++) right.push_back(tree.node(node).right);
    return choose_size(right, control);
  }
  /// Counts the step and the candidates that the emitted tokens prove right or wrong.
  /// @param decision  the result of choose() for the step
  template <class Token>
  void learn(const std::vector<Token>& candidates,
             std::span<const TokenId> emitted,
             const SizeDecision& decision) {
    int parent = -1, next = -1;
    for (std::size_t i = 0; i < emitted.size() && (i == 0 || next >= 0); i++) {
      parent = std::exchange(next, -1);
      for (const Token& one : candidates) {
        if (one.parent != parent) continue;
        const bool is_right = one.token == emitted[i];
        rates_[one.category].add(is_right);
        if (is_right) next = one.place;
      }
    }
    came(static_cast<int>(emitted.size()), decision);
  }

 private:
  SizeDecision choose_size(std::span<const double> right, ControlUse& control);
  void came(int n_tokens, const SizeDecision& decision);

  std::vector<Rate> rates_;
  SizeChooser chooser_;
};

}  // namespace engine

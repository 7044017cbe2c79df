#include "engine/decode/guess/suffix_choice.h"

#include <algorithm>

namespace engine {
namespace {

/// Suffixes of a match that are searched, from the longest: at the sequence's end, and after a guess.
constexpr int kMaxSuffixes = 8, kMaxSuffixesOfGuess = 2;
constexpr std::size_t kMaxFollowers = 8;  // candidates after a node
/// Probability of a token that always followed a match of this length, before observations.
constexpr double kOfLength[] = {0.25, 0.4, 0.55, 0.65, 0.75, 0.85};
/// Upper ends of the first classes of shares. Those of a token that always followed: once, and more often.
constexpr double kShareEnds[] = {0.2, 0.45};
constexpr double kOfShare[] = {0.15, 0.35, 0.7, 1, 1.1};

/// Lengths 1, 2, 3, 4 to 5, 6 to 9, and 10 or more.
std::size_t length_class(int length) {
  if (length <= 3) return static_cast<std::size_t>(std::max(length, 1) - 1);
  return length <= 5 ? 3 : length <= 9 ? 4 : 5;
}

std::size_t share_class(int n_seen, int n_context) {
  if (n_seen == n_context) return n_context == 1 ? 3 : 4;
  const double share = static_cast<double>(n_seen) / n_context;
  return share < kShareEnds[0] ? 0 : share < kShareEnds[1] ? 1 : 2;
}

/// The probabilities before observations, in the order of the classes.
std::vector<double> priors() {
  std::vector<double> all;
  for (const double source : {1.0, 0.3, 0.7, 0.21})  // the sequence, shorter; another text, shorter
    for (const double share : kOfShare)
      for (const double length : kOfLength) all.push_back(std::min(0.95, length * share) * source);
  return all;
}

int n_followers(const SuffixAutomaton& texts, int state) {
  int n = 0;
  texts.for_each_next(state, [&](TokenId, int to) { n += texts.count(to); });
  return n;
}

class Growth {
 public:
  Growth(const SuffixKnowledge& known,
         std::span<const SearchedText> texts,
         const SuffixDraftLimits& limits)
      : known_(known), texts_(texts), limits_(limits), tree_(limits.chain), matches_(1) {
    for (const SearchedText& text : texts_) matches_[0].push_back(text.match);
  }

  LikelyTree<SuffixToken> grow() {
    extend(SuffixToken{{.depth = -1, .right = 1}});
    while (tree_.n_nodes() < limits_.max_tokens && !tree_.is_complete()) {
      const SuffixToken node = tree_.take_best();
      Matches matches = matches_[static_cast<std::size_t>(node.parent + 1)];
      for (std::size_t t = 0; t < texts_.size(); t++)
        matches[t] = texts_[t].index->after(matches[t], node.token);
      matches_.push_back(std::move(matches));
      extend(node);
    }
    return std::move(tree_);
  }

 private:
  using Matches = std::vector<SuffixAutomaton::Match>;  // [texts]

  /// Offers the tokens that follow a node.
  void extend(const SuffixToken& node) {
    if (node.depth + 1 >= limits_.max_depth) return;
    found_.clear();
    const int n_suffixes = node.place < 0 ? kMaxSuffixes : kMaxSuffixesOfGuess;
    for (std::size_t t = 0; t < texts_.size(); t++) {
      const SuffixAutomaton& index = *texts_[t].index;
      auto [state, length] = matches_[static_cast<std::size_t>(node.place + 1)][t];
      bool shorter = false;
      for (int n = 0; state != 0 && n < n_suffixes; n++) {
        shorter |= add_followers(node, t, {state, length}, shorter);
        state = index.shorter(state);
        length = index.length(state);
      }
    }
    tree_.offer(found_, kMaxFollowers, limits_.min_p);
  }

  /// @return  true if a token followed the match
  bool add_followers(const SuffixToken& node,
                     std::size_t text,
                     SuffixAutomaton::Match match,
                     bool shorter) {
    const SuffixAutomaton& index = *texts_[text].index;
    const int n_context = n_followers(index, match.state);
    index.for_each_next(match.state, [&](TokenId token, int to) {
      SuffixToken one{{.token = token, .parent = node.place, .depth = node.depth + 1}, text, to};
      one.n_seen = index.count(to), one.n_context = n_context;
      one.category = SuffixKnowledge::category_of(match.length, one.n_seen, n_context, shorter,
                                                  texts_[text].kind);
      one.right = node.right * known_.right(one.category);
      add(one);
    });
    return n_context > 0;
  }

  /// Adds a candidate. Of the candidates with one token, keeps that of the longest match within a text, and the
  /// likeliest one among several texts.
  void add(const SuffixToken& one) {
    if (std::ranges::find(limits_.never, one.token) != limits_.never.end()) return;
    const auto other = std::ranges::find(found_, one.token, &SuffixToken::token);
    if (other == found_.end())
      found_.push_back(one);
    else if (other->text != one.text && other->right < one.right)
      *other = one;
  }

  const SuffixKnowledge& known_;
  std::span<const SearchedText> texts_;
  const SuffixDraftLimits& limits_;
  LikelyTree<SuffixToken> tree_;
  std::vector<Matches> matches_;    // [1 + nodes] of the sequence, and of the path to each node
  std::vector<SuffixToken> found_;  // after the node that is extended
};

}  // namespace

SuffixKnowledge::SuffixKnowledge() : LikelyKnowledge(priors()) {}

std::size_t SuffixKnowledge::category_of(
    int length, int n_seen, int n_context, bool shorter, GuessSource::Kind kind) {
  const bool other = kind == GuessSource::Kind::Earlier || kind == GuessSource::Kind::File;
  const std::size_t source =
      2 * static_cast<std::size_t>(other) + static_cast<std::size_t>(shorter);
  return (source * std::size(kOfShare) + share_class(n_seen, n_context)) * std::size(kOfLength) +
         length_class(length);
}

LikelyTree<SuffixToken> suffix_tree(const SuffixKnowledge& known,
                                    std::span<const SearchedText> texts,
                                    const SuffixDraftLimits& limits) {
  return Growth(known, texts, limits).grow();
}

}  // namespace engine

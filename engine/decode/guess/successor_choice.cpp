#include "engine/decode/guess/successor_choice.h"

#include <algorithm>
#include <array>

namespace engine {
namespace {

constexpr std::size_t kLists = 3, kRanks = 6,
                      kDepths = 2;          // of the classes; the last ones hold the rest
constexpr std::size_t kMaxCandidates = 10;  // after a node
/// Before observations: the probability of a pair's first successor by sureness, the share of each rank in
/// the rest, and factors of the lists and depths.
constexpr std::array<double, kSurenesses> kFirst{0.5, 0.45, 0.25, 0.42, 0.6, 0.8};
constexpr std::array<double, kRanks> kRest{0, 0.3, 0.15, 0.08, 0.05, 0.02};
constexpr std::array<double, kLists> kOfList{1, 0.6, 0.25};
constexpr std::array<double, kDepths> kOfDepth{1, 0.9};

std::vector<double> priors() {
  std::vector<double> all;
  for (const double list : kOfList)
    for (const double first : kFirst)
      for (const double rest : kRest)
        for (const double depth : kOfDepth)
          all.push_back((rest == 0 ? first * list : (1 - first) * rest * list) * depth);
  return all;
}

class Growth {
 public:
  using List = SuccessorKnowledge::List;

  Growth(const SuccessorKnowledge& known,
         const SuccessorTable& table,
         const SuccessorLimits& limits)
      : known_(known), table_(table), limits_(limits) {}

  LikelyTree<SuccessorToken> grow() {
    extend(SuccessorToken{{.token = limits_.last, .depth = -1, .right = 1}}, limits_.before);
    while (tree_.n_nodes() < limits_.max_tokens && !tree_.is_complete()) {
      const SuccessorToken node = tree_.take_best();
      extend(node, node.parent < 0 ? limits_.last : tree_.node(node.parent).token);
    }
    return std::move(tree_);
  }

 private:
  /// Offers the successors of a node.
  void extend(const SuccessorToken& node, TokenId before) {
    const bool ends =
        node.place >= 0 && std::ranges::find(limits_.end_ids, node.token) != limits_.end_ids.end();
    if (ends || node.depth + 1 >= limits_.max_depth) return;
    found_.clear();
    const Successors pair = table_.of_pair(before, node.token);
    add(node, pair, List::OfPair);
    add(node, table_.of_token(node.token), pair.tokens.empty() ? List::OfToken : List::OfPairElse);
    tree_.offer(found_, kMaxCandidates, limits_.least);
  }

  void add(const SuccessorToken& node, const Successors& successors, List list) {
    for (int rank = 0; rank < static_cast<int>(successors.tokens.size()); rank++) {
      const TokenId token = successors.tokens[static_cast<std::size_t>(rank)];
      if (std::ranges::find(found_, token, &SuccessorToken::token) != found_.end()) continue;
      SuccessorToken one{{.token = token, .parent = node.place, .depth = node.depth + 1}, rank};
      one.category = SuccessorKnowledge::category_of(list, successors.sure, rank, one.depth);
      one.right = node.right * known_.right(one.category);
      found_.push_back(one);
    }
  }

  const SuccessorKnowledge& known_;
  const SuccessorTable& table_;
  const SuccessorLimits& limits_;
  LikelyTree<SuccessorToken> tree_;
  std::vector<SuccessorToken> found_;  // after the node that is extended
};

}  // namespace

SuccessorKnowledge::SuccessorKnowledge() : LikelyKnowledge(priors()) {}

std::size_t SuccessorKnowledge::category_of(List list, Sureness sure, int rank, int depth) {
  const auto in = [](int value, std::size_t n) {
    return std::min(static_cast<std::size_t>(value), n - 1);
  };
  const auto first = static_cast<std::size_t>(list) * kSurenesses + static_cast<std::size_t>(sure);
  return (first * kRanks + in(rank, kRanks)) * kDepths + in(depth, kDepths);
}

LikelyTree<SuccessorToken> likely_successors(const SuccessorKnowledge& known,
                                             const SuccessorTable& table,
                                             const SuccessorLimits& limits) {
  return Growth(known, table, limits).grow();
}

}  // namespace engine

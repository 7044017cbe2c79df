// The likeliest continuations of a sequence by a table of successors (recycling with rows=auto; our addition to
// arXiv:2408.08696, whose tree is static).
//   candidates  the successors of the last two tokens, then those of the last token
//   class       which of the two lists, rank in it, probability class of its first token (Sureness),
//               depth
#pragma once

#include <span>

#include "engine/decode/control/likely_tree.h"
#include "engine/decode/guess/successor_table.h"

namespace engine {

/// A successor.
struct SuccessorToken : LikelyToken {
  int rank = 0;  // in its list
};

/// Statistics about the success of successors.
struct SuccessorKnowledge final : LikelyKnowledge {
  SuccessorKnowledge();
  /// The list that a successor is from. OfPairElse: from the token's list, while the list of the pair is
  /// known and lacks it.
  enum class List { OfPair, OfToken, OfPairElse };
  /// The class of a candidate.
  /// @param depth  from 0
  static std::size_t category_of(List list, Sureness sure, int rank, int depth);
};

/// Limits of the tree.
struct SuccessorLimits {
  TokenId before = -1, last = 0;          // the last two tokens of the sequence; before -1: none
  int max_tokens = 1;                     // nodes
  int max_depth = 1;                      // levels of nodes
  double least = 0;                       // probability of a node
  std::span<const TokenId> end_ids = {};  // tokens after which nothing is guessed
};

/// Grows the tree of the likeliest successors.
LikelyTree<SuccessorToken> likely_successors(const SuccessorKnowledge& known,
                                             const SuccessorTable& table,
                                             const SuccessorLimits& limits);

}  // namespace engine

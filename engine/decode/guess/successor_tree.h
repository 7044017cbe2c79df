// Guesses from a table of successors, by a static tree of ranks (token recycling, arXiv:2408.08696).
#pragma once

#include <span>

#include "engine/base/token_tree.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/decode/guess/successor_table.h"

namespace engine {

/// The inputs of add_successors() besides the tree.
struct SuccessorSource {
  const RankTree& ranks;
  const SuccessorTable& table;
  TokenId before;                    // the token before row 0; -1: none
  int max_depth;                     // of guesses below row 0
  std::span<const TokenId> end_ids;  // tokens after which nothing is guessed
};

/// The token before a row of the tree.
/// @param before  the token before row 0
TokenId token_before(const TokenTree& tree, int row, TokenId before);

/// Adds guesses below row 0, breadth first: a node of rank r is the successor r of its parent's token. A node
/// whose parent was not added, or whose successor is unknown, is left out. If another source of guesses
/// has already added the token below that parent, the node uses that row.
void add_successors(TokenTree& tree, const SuccessorSource& source);

}  // namespace engine

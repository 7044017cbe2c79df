#include "engine/decode/guess/successor_tree.h"

#include <algorithm>
#include <vector>

namespace engine {
namespace {

/// The child of a row with this token; -1: there is none.
int child_of(const TokenTree& tree, int parent, TokenId token) {
  for (int row = parent + 1; row < tree.n_rows(); row++) {
    const auto at = static_cast<std::size_t>(row);
    if (tree.parent[at] == parent && tree.token[at] == token) return row;
  }
  return -1;
}

/// The row for a node with this parent and rank; -1: its successor is unknown or follows an end token.
int row_for(
    TokenTree& tree, const SuccessorSource& source, int parent, std::int16_t depth, int rank) {
  const TokenId token = tree.token[static_cast<std::size_t>(parent)];
  const auto successors = source.table.of(token_before(tree, parent, source.before), token);
  if (rank >= static_cast<int>(successors.size())) return -1;
  if (parent > 0 && std::ranges::find(source.end_ids, token) != source.end_ids.end()) return -1;
  const TokenId guess = successors[static_cast<std::size_t>(rank)];
  const int row = child_of(tree, parent, guess);
  if (row >= 0) return row;
  return tree.add(guess, parent,
                  RowTag{RowTag::Kind::Guess, depth, static_cast<std::int16_t>(rank)});
}

}  // namespace

TokenId token_before(const TokenTree& tree, int row, TokenId before) {
  const int parent = tree.parent[static_cast<std::size_t>(row)];
  return parent < 0 ? before : tree.token[static_cast<std::size_t>(parent)];
}

void add_successors(TokenTree& tree, const SuccessorSource& source) {
  const RankTree& ranks = source.ranks;
  std::vector<int> row_of(static_cast<std::size_t>(ranks.n_nodes()), -1);
  for (std::size_t node = 0; node < row_of.size(); node++) {
    if (ranks.depth[node] > source.max_depth) break;  // nodes are ordered by depth
    const int above = ranks.parent[node];
    const int parent = above < 0 ? 0 : row_of[static_cast<std::size_t>(above)];
    if (parent < 0) continue;
    row_of[node] = row_for(tree, source, parent, static_cast<std::int16_t>(ranks.depth[node]),
                           ranks.rank[node]);
  }
}

}  // namespace engine

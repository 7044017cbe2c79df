#include "engine/base/token_tree.h"

#include <algorithm>

namespace engine {

int TokenTree::add(TokenId id, int parent_row, RowTag row_tag) {
  token.push_back(id);
  parent.push_back(parent_row);
  tag.push_back(row_tag);
  return n_rows() - 1;
}

void TokenTree::clear() {
  token.clear();
  parent.clear();
  tag.clear();
  owner.clear();
}

void check(const TokenTree& tree, int vocab_size) {
  const auto n = tree.token.size();
  ensure(n > 0, "a token tree must have at least one row");
  ensure(tree.parent.size() == n && tree.tag.size() == n,
         "a token tree's arrays must have the same size");
  ensure(tree.owner.empty() || tree.owner.size() == n,
         "either every row or no row must have an owner");
  for (std::size_t i = 0; i < n; i++) {
    ensure(tree.parent[i] >= -1 && tree.parent[i] < static_cast<int>(i),
           "a row's parent must come before it");
    ensure(tree.token[i] >= 0 && tree.token[i] < vocab_size,
           "a row's token is not in the vocabulary");
  }
}

std::vector<int> chain_of(const TokenTree& tree, int row) {
  std::vector<int> chain;
  for (int r = row; r >= 0; r = tree.parent[static_cast<std::size_t>(r)]) chain.push_back(r);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace engine

// The rows of one forward pass after the committed prefix: a forest with parent pointers, evaluated
// with tree attention. Every decoder fills such a tree.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// The role of a row, for pictures and metrics. The forward pass does not read it.
struct RowTag {
  /// Roles; `a` and `b` depend on the role.
  enum class Kind : std::uint8_t {
    Current,  ///< a committed token without keys and values yet
    Window,   ///< a cell of Lookahead's window: a = level, b = column
    Guess,    ///< a token of a pool n-gram: a = n-gram's number in this step, b = index in it; in a
              ///< tree of successors (recycling): a = depth from 1, b = rank; copied from a text
              ///< (suffix): a = minus GuessSource::Kind, b = depth from 0
    Draft,    ///< a token with a draft distribution: a = depth from 1, b = rank among its siblings
    Block,    ///< a cell of a Jacobi block: a = slot
    Probe,    ///< a token of an answer probe (FastCoT)
  };
  Kind kind = Kind::Current;
  std::int16_t a = 0;
  std::int16_t b = 0;
};

/// Rows in topological order: parent[i] < i; -1 is the committed prefix. Row 0 is the last emitted
/// token, which has no keys and values yet.
struct TokenTree {
  std::vector<TokenId> token;  // [n_rows]
  std::vector<int> parent;     // [n_rows]
  std::vector<RowTag> tag;     // [n_rows]
  /// [n_rows] the rank that computes the row (lookahead_rank.h); empty: one device computes all.
  std::vector<std::uint8_t> owner = {};

  /// Number of rows.
  int n_rows() const { return static_cast<int>(token.size()); }
  /// Appends a row.
  /// @return  its index
  int add(TokenId id, int parent_row, RowTag row_tag);
  /// Removes all rows.
  void clear();
};

/// Checks a tree.
/// @throws ContractError  if sizes differ, a parent is not before its row, or a token is not in
///                        0..vocab_size-1
void check(const TokenTree& tree, int vocab_size);
/// The rows from the oldest ancestor to `row`.
std::vector<int> chain_of(const TokenTree& tree, int row);

}  // namespace engine

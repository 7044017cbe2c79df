// The rows of one forward besides the committed prefix: a forest with parent pointers. Every
// decoder of this program is a way to fill one.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// What a row is, for pictures and metrics. The forward never reads it.
struct RowTag {
  enum class Kind : std::uint8_t {
    Current,  ///< a committed token without keys and values yet
    Window,   ///< a cell of Lookahead's window: a = level, b = column
    Guess,    ///< a pool n-gram's token: a = n-gram id of this step, b = index in it
    Draft,    ///< proposed with a distribution: a = depth from 1, b = rank among its siblings
    Block,    ///< a cell of a Jacobi block: a = slot
    Probe,    ///< an answer probe's token
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
  /// [n_rows] the rank that computes it, where several share the rows (lookahead_rank.h); empty:
  /// one computes all.
  std::vector<std::uint8_t> owner = {};

  int n_rows() const { return static_cast<int>(token.size()); }
  /// @return the row's index
  int add(TokenId id, int parent_row, RowTag row_tag);
  void clear();
};

/// @throws ContractError  if sizes differ, a parent is not before its row, or a token is not below
/// vocab_size
void check(const TokenTree& tree, int vocab_size);
/// Rows from the oldest ancestor to the row itself.
std::vector<int> chain_of(const TokenTree& tree, int row);

}  // namespace engine

// Token recycling's table (arXiv:2408.08696, adjacency matrix): for each token the k tokens that the
// target found likeliest after it when it was last computed. A second part, our addition, has the same
// for pairs of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// Successors of tokens and of pairs. The memory is fixed: 4 k (vocabulary + pairs) bytes and 8 bytes for
/// each pair.
class SuccessorTable {
 public:
  /// @param k        successors kept for each token or pair, at least 1
  /// @param n_pairs  pairs that fit; a power of two, or 0. A new pair replaces the one in its place
  SuccessorTable(int vocab_size, int k, int n_pairs);

  /// The successors of `token` after `before`: those of the pair if it is known, else those of the
  /// token. Likeliest first, at most k, empty if unknown. Valid until the next set().
  /// @param before  the token before; -1: none
  std::span<const TokenId> of(TokenId before, TokenId token) const;
  /// Replaces the successors of a token and of its pair.
  /// @param successors  likeliest first; ends at the first -1. Of more than k, the first k are kept
  void set(TokenId before, TokenId token, std::span<const TokenId> successors);

  /// Successors kept for each token.
  int k() const { return k_; }
  /// Number of tokens with successors.
  int n_tokens() const { return n_tokens_; }

 private:
  std::size_t place_of(TokenId before, TokenId token) const;

  int k_;
  int n_tokens_ = 0;
  std::vector<TokenId> of_token_;     // [vocab_size, k] -1: none
  std::vector<std::uint64_t> pairs_;  // [n_pairs] the pair in each place; kNoPair: none
  std::vector<TokenId> of_pair_;      // [n_pairs, k]
};

/// The table that the runs of one target share (keep=true). A run with another width replaces it.
class KeptSuccessors {
 public:
  /// The table for these sizes, which stays valid while a run holds it.
  std::shared_ptr<SuccessorTable> table(int vocab_size, int k, int n_pairs);

 private:
  std::shared_ptr<SuccessorTable> table_;
  int n_pairs_ = 0;
};

}  // namespace engine

// Token recycling's table (arXiv:2408.08696, adjacency matrix): for each token the k tokens that the
// target found likeliest after it when it was last computed. A second part, our addition, has the same
// for pairs of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// The probability that the target gave the first of a token's successors, or why there is none.
enum class Sureness : std::uint8_t {
  Seen,     ///< the first one is from the prompt
  Unknown,  ///< it is from the target, but its probability was not computed
  Low,      ///< below 0.3
  Middle,   ///< below 0.6
  High,     ///< below 0.9
  Highest,
};
inline constexpr std::size_t kSurenesses = 6;
/// The class of a probability.
Sureness sureness_of(double probability);

/// The successors of a token.
struct Successors {
  std::span<const TokenId> tokens;  // likeliest first, at most k; empty: unknown
  Sureness sure = Sureness::Unknown;
};

/// Successors of tokens and of pairs. The memory is fixed: (4 k + 1) (vocabulary + pairs) bytes and 8 bytes
/// for each pair.
class SuccessorTable {
 public:
  /// @param k        successors kept for each token or pair, at least 1
  /// @param n_pairs  pairs that fit; a power of two, or 0. A new pair replaces the one in its place
  SuccessorTable(int vocab_size, int k, int n_pairs);

  /// The successors of `token` after `before`: those of the pair if it is known, else those of the
  /// token. Likeliest first, at most k, empty if unknown. Valid until the next set().
  /// @param before  the token before; -1: none
  std::span<const TokenId> of(TokenId before, TokenId token) const;
  /// The successors of the token, or of the pair; valid until the next set() or observe().
  Successors of_token(TokenId token) const;
  Successors of_pair(TokenId before, TokenId token) const;
  /// Replaces the successors of a token and of its pair.
  /// @param successors  likeliest first; ends at the first -1. Of more than k, the first k are kept
  void set(TokenId before,
           TokenId token,
           std::span<const TokenId> successors,
           Sureness sure = Sureness::Unknown);
  /// Moves `next`, which followed them in a text, to the front of the successors of a token and of its
  /// pair.
  void observe(TokenId before, TokenId token, TokenId next);

  /// Successors kept for each token.
  int k() const { return k_; }
  /// Number of tokens with successors.
  int n_tokens() const { return n_tokens_; }

 private:
  /// The memory of a list.
  struct List {
    std::span<TokenId> tokens;  // [k] -1: none
    Sureness& sure;
  };
  std::size_t place_of(TokenId before, TokenId token) const;
  List list_of(TokenId token);
  std::optional<List> list_of(TokenId before, TokenId token);

  int k_;
  int n_tokens_ = 0;
  std::vector<TokenId> of_token_;        // [vocab_size, k] -1: none
  std::vector<std::uint64_t> pairs_;     // [n_pairs] the pair in each place; kNoPair: none
  std::vector<TokenId> of_pair_;         // [n_pairs, k]
  std::vector<Sureness> sure_of_token_;  // [vocab_size]
  std::vector<Sureness> sure_of_pair_;   // [n_pairs]
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

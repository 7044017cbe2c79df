// Chooses which tokens of the pool's n-grams a Lookahead step verifies, and how many columns of the
// window it computes (n_guesses=auto, window=auto; our addition).
//   guesses  the n-grams form a tree; a node's probability follows from how often n-grams of its
//            source and recency, with or without earlier hits, were right. N-grams that agree are not
//            independent, so it is corrected by how often nodes with about this probability were
//            right. The likeliest nodes are verified while their tokens are worth the time of their rows
//   window   a column pays later, when an n-gram that only the window has found is accepted. The
//            value of a row is the number of these tokens per row of the window
// An emitted token shows whether a guess was right, even if it was not verified. So the rates of guesses are
// learned at no cost, also in steps without guesses.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/decode/control/rate.h"
#include "engine/decode/control/size_choice.h"

namespace engine {

/// An n-gram that the pool found for the last token.
struct FoundNgram {
  const PoolNgram* ngram = nullptr;
  bool from_window = false;  // neither the prompt nor the output has it
};

/// A token of the tree of found n-grams.
struct PoolNode {
  int parent = -1;  // an earlier node; -1: the last token
  TokenId token = 0;
  int guess = 0;     // index of the first n-gram with this path
  int depth = 0;     // from 0
  double alone = 0;  // probability that the token is right after its parent, uncorrected
  double right = 0;  // probability that the path up to this token is right
};

/// Statistics about the pool's guesses and the window.
class PoolKnowledge final : public Learned {
 public:
  PoolKnowledge();

  /// The tree of these n-grams, likeliest nodes first.
  /// @param found  most recent last
  /// @param depth  tokens of an n-gram that may be verified
  std::vector<PoolNode> nodes(std::span<const FoundNgram> found, int depth);
  /// Counts how many tokens of each n-gram equal the emitted ones.
  /// @param found  as found before the step
  void learn(std::span<const FoundNgram> found, std::span<const TokenId> emitted);
  /// Counts a step.
  /// @param window_rows  rows of the window
  /// @param plain_share  the step's expected time / that of a plain step
  void came(int window_rows, int n_tokens, double plain_share);

  /// Expected tokens that a row of the window yields.
  double tokens_per_window_row() const;
  /// The number of columns, at most `most`, whose rows are worth their time.
  /// @param n_levels  rows of a column
  /// @param n_other   rows of the step without the window
  int choose_columns(int most, int n_levels, int n_other, const StepControl& control) const;

  SizeChooser chooser;

 private:
  static constexpr std::size_t kRanks = 4, kStates = 3, kDepths = 6, kBuckets = 8;
  Rate& first(const FoundNgram& found, std::size_t rank);
  Rate& next(const FoundNgram& found, std::size_t depth);
  Rate& corrected(const PoolNode& node);
  void learn_nodes(std::span<const FoundNgram> found, std::span<const TokenId> emitted);

  // the first token: by source, rank (0: the most recent) and state (untried, never right, right
  // before)
  std::array<std::array<std::array<Rate, kStates>, kRanks>, 2> first_;
  std::array<std::array<Rate, kDepths>, 2> next_;  // a further token, by source and depth
  // a node whose parent was right, by first or further token and by uncorrected probability
  std::array<std::array<Rate, kBuckets>, 2> corrected_;
  double window_rows_ = 0, window_tokens_ = 0;
};

}  // namespace engine

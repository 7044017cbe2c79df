// How much of its window and pool Lookahead sends where a step may have only so many rows (ours,
// not the paper's, which has W = G and N set by hand): what brought the fewest tokens a row rests.
// Which sizes are used changes no token.
#pragma once

#include <vector>

namespace engine {

struct LookaheadSize {
  int window = 0;      // W: columns
  int ngram_size = 2;  // N: a column and a guess have N - 1 rows each
  int n_guesses = 0;   // G

  /// Rows of a step with as many guesses; the last token's is the first column's.
  int n_rows() const { return (window + n_guesses) * (ngram_size - 1) + (window == 0); }
  bool operator==(const LookaheadSize&) const = default;
};

/// What the guesses of one step brought.
struct LookaheadGain {
  int n_tokens = 0;            // guessed tokens that were right, by the best guess
  std::vector<int> n_by_rank;  // by guess, the most recent first: tokens beyond those before it
  int column = -1;             // where the best guess was collected; -1: not in the window
};

class LookaheadSizes {
 public:
  /// @param most  the sizes asked for, never exceeded
  explicit LookaheadSizes(LookaheadSize most);

  /// The sizes of at most `n_rows` rows: from the largest the last column, the oldest guess or the
  /// deepest level of both goes at a time, whichever has brought the fewest tokens a row. At 1 row
  /// at most a column of 2-grams is left, whose only row is the last token's.
  LookaheadSize fitting(int n_rows) const;
  /// Counts one step with sizes `sent`, `n_guesses` those that there were.
  void count(const LookaheadSize& sent, const LookaheadGain& gain);
  /// Forgets half of what was counted, so that what rests is tried again.
  void fade();

 private:
  struct Part {
    double n_steps = 0;  // in which it was sent
    double n_tokens = 0;
    double tokens_per_row(int n_rows) const;
  };

  LookaheadSize most_;
  std::vector<Part> columns_;  // [W]
  std::vector<Part> guesses_;  // [G], the most recent first
  std::vector<Part> levels_;   // [N - 1]
};

}  // namespace engine

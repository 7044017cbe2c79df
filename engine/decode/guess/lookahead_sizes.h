// Chooses W, N and G of a Lookahead step with a limited number of rows: omits those columns, levels
// and guesses that yielded the fewest tokens per row. Our addition; the paper has W = G and sets N
// by hand. The sizes change no token.
#pragma once

#include <vector>

namespace engine {

/// Sizes of a step's window and guesses.
struct LookaheadSize {
  int window = 0;      // W: columns
  int ngram_size = 2;  // N: a column and a guess have N - 1 rows each
  int n_guesses = 0;   // G

  /// Rows of a step with all n_guesses guesses; the last token's row is the first column's.
  int n_rows() const { return (window + n_guesses) * (ngram_size - 1) + (window == 0); }
  bool operator==(const LookaheadSize&) const = default;
};

/// The tokens that the guesses of one step yielded.
struct LookaheadGain {
  int n_tokens = 0;  // accepted tokens of the best guess
  // [guesses, most recent first] accepted tokens that no earlier guess had matched
  std::vector<int> n_by_rank;
  // the window's column from which the best guess was collected; -1: not from the window
  int column = -1;
};

/// Collects statistics of columns, guesses and levels, and chooses sizes by them.
class LookaheadSizes {
 public:
  /// @param most  the largest sizes
  explicit LookaheadSizes(LookaheadSize most);

  /// Sizes with at most `n_rows` rows. Starts from the largest sizes and repeatedly drops the last
  /// column, the oldest guess or the deepest level, whichever yielded the fewest tokens per row.
  /// With 1 row, at most one column of 2-grams is left; its only row is the last token's.
  LookaheadSize fitting(int n_rows) const;
  /// Counts one step.
  /// @param sent  the sizes of the step; n_guesses is the number of guesses that it verified
  void count(const LookaheadSize& sent, const LookaheadGain& gain);
  /// Halves all statistics. Parts that were left out are then tried again.
  void halve_statistics();

 private:
  struct Part {
    double n_steps = 0;  // steps that included this part
    double n_tokens = 0;
    double tokens_per_row(int n_rows) const;
  };

  LookaheadSize most_;
  std::vector<Part> columns_;  // [W]
  std::vector<Part> guesses_;  // [G], most recent first
  std::vector<Part> levels_;   // [N - 1]
};

}  // namespace engine

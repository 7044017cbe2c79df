// What the two forms of Jacobi decoding share: first guesses, counters over whole blocks, and what
// is told of a block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/event/event.h"

namespace engine {

/// The tokens a block begins with: a function of (seed, position, text).
class BlockFiller {
 public:
  /// @param fill  "prompt", "pad" or "repeat"
  BlockFiller(const std::string& fill, std::uint64_t seed);
  /// @param position  of the guess, from the sequence's start
  TokenId operator()(const Sequence& prefix, int position) const;

 private:
  enum class Fill { Prompt, Pad, Repeat };
  Fill fill_;
  std::uint64_t seed_;
};

/// Blocks, iterations, and what hindsight says of converged blocks (event/trajectory.h).
class BlockCounts {
 public:
  /// @param whole_blocks  false: a window that slides is no block with a beginning and an end, and
  ///                      only its iterations are counted
  explicit BlockCounts(bool whole_blocks = true) : whole_blocks_(whole_blocks) {}
  /// A block opens with its first guesses.
  void open(const std::vector<TokenId>& state);
  /// It was refined once.
  void refine(const std::vector<TokenId>& state);
  /// Its last state was its fixed point.
  void converge();

  int iteration() const { return iteration_; }  // of the open block, 0: its first guesses
  /// The open block as it stands, for the event stream.
  /// @param first_pos  of state[0], from the sequence's start
  /// @param n_final    of state, what can no longer change
  BlockRefined told(int first_pos,
                    const std::vector<TokenId>& state,
                    int n_final,
                    bool converged) const;
  std::map<std::string, double> metrics() const;

 private:
  bool whole_blocks_;
  std::vector<std::vector<TokenId>> points_;  // the open block's trajectory
  int n_blocks_ = 0;
  int iteration_ = 0;
  std::int64_t n_iterations_ = 0;
  std::int64_t n_stationary_ = 0;
  std::int64_t n_converged_ = 0;
  double fast_forward_sum_ = 0;  // of the converged blocks' means
};

}  // namespace engine

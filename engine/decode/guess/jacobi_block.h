// What the two forms of Jacobi decoding share: first guesses, counters over whole blocks, and what
// is told of a block.
#pragma once

#include <cstdint>
#include <map>
#include <span>
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

/// Blocks, iterations, and what hindsight says of blocks that have ended (event/trajectory.h). The
/// form that keeps keys and values passes through the same states as the one that computes every
/// row anew, so both have the authors' counters, and neither computes anything for them.
class BlockCounts {
 public:
  /// @param whole_blocks  false: a window that slides is no block with a beginning and an end, and
  ///                      only its iterations are counted
  explicit BlockCounts(bool whole_blocks = true) : whole_blocks_(whole_blocks) {}
  /// A block opens with its first guesses.
  void open(const std::vector<TokenId>& state);
  /// It was refined once.
  void refine(const std::vector<TokenId>& state);
  /// Its last state is its fixed point, or is so up to and with the end token that ended the text.
  /// @param eos_ids  where that is so; empty: all of it is
  void end_block(std::span<const TokenId> eos_ids = {});

  int iteration() const { return iteration_; }  // of the open block, 0: its first guesses
  /// The open block as it stands, for the event stream.
  /// @param first_pos  of state[0], from the sequence's start
  /// @param n_final    of state, what can no longer change
  BlockRefined told(int first_pos,
                    const std::vector<TokenId>& state,
                    int n_final,
                    bool converged) const;
  std::map<std::string, std::int64_t> counts() const;
  std::map<std::string, double> figures() const;

 private:
  bool whole_blocks_;
  std::vector<std::vector<TokenId>> points_;  // the open block's trajectory
  int n_blocks_ = 0;
  int iteration_ = 0;
  std::int64_t n_iterations_ = 0;
  std::int64_t n_stationary_ = 0;
  std::int64_t n_ended_ = 0;
  double fast_forward_sum_ = 0;  // of the ended blocks' means, by the clock of hindsight
  double proved_sum_ = 0;        // the same by the live clock: what each iteration proved final
};

}  // namespace engine

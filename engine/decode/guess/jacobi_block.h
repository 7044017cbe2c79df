// Shared by both forms of Jacobi decoding: first guesses, counters over whole blocks, and the
// events about a block.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/decode/step/sequence.h"
#include "engine/event/event.h"

namespace engine {

/// Makes the first guesses of a block. A guess depends only on (seed, position, tokens so far).
class BlockFiller {
 public:
  /// Prompt: a random token of the sequence so far. Pad: token 0. Repeat: the last token.
  enum class Fill { Prompt, Pad, Repeat };
  /// @param seed  of the run; used by Prompt alone
  BlockFiller(Fill fill, std::uint64_t seed) : fill_(fill), seed_(seed) {}
  /// @param position  of the guess in the sequence
  TokenId operator()(const Sequence& prefix, int position) const;

 private:
  Fill fill_;
  std::uint64_t seed_;
};

/// Counts blocks and iterations, and evaluates the trajectories of finished blocks
/// (event/timeline/trajectory.h). Both forms of Jacobi decoding pass through the same states, so
/// both report the counters of the CLLM paper.
class BlockCounts {
 public:
  /// @param whole_blocks  false: a sliding window has no blocks that begin and end, so only
  ///                      iterations are counted
  explicit BlockCounts(bool whole_blocks = true) : whole_blocks_(whole_blocks) {}
  /// Call when a block begins, with its first guesses.
  void open(const std::vector<TokenId>& state);
  /// Call after each iteration, with the block's new state.
  void refine(const std::vector<TokenId>& state);
  /// Call when the block has ended. Its last state is the fixed point, at least up to the end token
  /// that ended the run.
  /// @param eos_ids  the end tokens if one ended the run; empty: the whole state is the fixed point
  void end_block(std::span<const TokenId> eos_ids = {});

  /// Iterations of the open block so far; 0: it still holds its first guesses.
  int iteration() const { return iteration_; }
  /// An event with the open block's state.
  /// @param first_pos  position of state[0] in the sequence
  /// @param n_final    leading tokens of `state` that can no longer change
  BlockRefined event(int first_pos,
                     const std::vector<TokenId>& state,
                     int n_final,
                     bool converged) const;
  /// Returns "iterations"; for whole blocks also "blocks", "blocks_converged", "stationary_tokens".
  std::map<std::string, std::int64_t> counts() const;
  /// For whole blocks: stationary_per_block, fast_forward_mean, fast_forward_live.
  std::map<std::string, double> figures() const;

 private:
  bool whole_blocks_;
  std::vector<std::vector<TokenId>> points_;  // the open block's trajectory
  int n_blocks_ = 0;
  int iteration_ = 0;
  std::int64_t n_iterations_ = 0;
  std::int64_t n_stationary_ = 0;
  std::int64_t n_ended_ = 0;
  // Sums over ended blocks of their mean fast-forwarded tokens per iteration:
  double fast_forward_sum_ = 0;  // computed at the end of a block from its fixed point
  double proved_sum_ = 0;        // counted during decoding: tokens proved final
};

}  // namespace engine

// What the Consistency LLMs' authors count on one converged block, in hindsight: fast-forwarded and
// stationary tokens (Kou et al. 2024, arXiv:2403.00835, section 4.3).
// A live view cannot know these numbers: they compare every iteration with the last.
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"

namespace engine {

struct TrajectoryCounts {
  /// [n_iterations] positions that joined the contiguous correct front in each iteration.
  std::vector<int> fast_forward;
  double fast_forward_mean = 0;  ///< over iterations; 0 if there was none
  /// [n] iterations each position had been right in a row when the block converged.
  std::vector<int> final_run;
  /// [n] the run that the front alone explains: n_iterations - the iteration it was reached in.
  std::vector<int> baseline;
  /// [n] right before everything in front of it was, and never changed since.
  std::vector<bool> stationary;
  int n_stationary = 0;
  int n_iterations = 0;
};

/// @param points   the block's states: [0] the initial guess, the last the fixed point (a repeated
///                 last state is counted once); all of one length, at least one
/// @param eos_ids  counting stops behind the fixed point's first end token, and with the iteration
///                 in which it joined the front; empty: never. Of a request's last block alone
TrajectoryCounts count_trajectory(std::span<const std::vector<TokenId>> points,
                                  std::span<const TokenId> eos_ids = {});

}  // namespace engine

// Counts fast-forwarded and stationary tokens of a converged Jacobi block (Consistency LLMs, Kou et
// al. 2024, arXiv:2403.00835, section 4.3). The counts compare every iteration with the last one,
// so they are known only after convergence.
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// The counts of one trajectory.
struct TrajectoryCounts {
  /// [n_iterations] number of positions that joined the correct prefix in each iteration.
  std::vector<int> fast_forward;
  double fast_forward_mean = 0;  ///< over iterations; 0 without iterations
  /// [n] number of iterations at the end of the trajectory in which the position was continuously
  /// correct.
  std::vector<int> final_run;
  /// [n] number of iterations since the correct prefix reached the position. A position in the
  /// correct prefix stays correct, so this is at most final_run.
  std::vector<int> baseline;
  /// [n] true if a position had its final token before all earlier positions had theirs.
  std::vector<bool> stationary;
  int n_stationary = 0;
  int n_iterations = 0;
};

/// Counts a trajectory.
/// @param points   the block's states, at least one, of equal length: [0] the initial guess, the
///                 last the fixed point (a repeated last state counts once)
/// @param eos_ids  for the last block of a request: counts only positions up to the first end token
///                 of the fixed point, and only iterations until this token joined the correct
///                 prefix. Empty: counts all
TrajectoryCounts count_trajectory(std::span<const std::vector<TokenId>> points,
                                  std::span<const TokenId> eos_ids = {});

}  // namespace engine

// Jacobi iteration as the textbook has it: every position of the block anew in every forward, until
// nothing changes. Slower than the `jacobi` decoder; the oracle it is tested against, and what
// trajectories are collected with (Kou et al. 2024, arXiv:2403.00835).
#pragma once

#include <span>
#include <vector>

#include "engine/decode/sequence.h"
#include "engine/model/language_model.h"

namespace engine {

struct JacobiTrajectory {
  std::vector<std::vector<TokenId>> points;  // [0] the initial guess ... the fixed point, once
  int n_forwards = 0;                        // at most block size + 1
};

/// Iterates the block that follows `prefix` to its fixed point, which is what AR with the same
/// sampling emits. The sequence's tokens and cache stay as they are.
/// @param guess  [n] initial tokens, n >= 1; the block must fit the context
JacobiTrajectory textbook_jacobi(LanguageModel& model,
                                 Sequence& prefix,
                                 std::span<const TokenId> guess,
                                 const Sampling& sampling);

}  // namespace engine

// The most likely tokens of a row of logits, from which drafts are made.
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"
#include "kernels/ops.h"

namespace engine {

/// Tokens with their probabilities, the most likely first; ties go to the lowest id.
struct RankedTokens {
  std::vector<TokenId> token;
  std::vector<double> p;  // probabilities in the whole distribution, so their sum may be below 1
};

/// Converts the result of kernels::Ops::rank for one row.
/// @param tokens  [ranking.n]
RankedTokens ranked_of(const kernels::Ranking& ranking,
                       const kernels::RankedToken* tokens,
                       float temperature);

/// The n most likely tokens at temperature 1, computed on the host; none if a logit is NaN or +inf.
RankedTokens ranked_tokens(std::span<const float> logits, int n);

}  // namespace engine

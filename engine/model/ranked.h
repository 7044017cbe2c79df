// The likeliest tokens of a row of logits, as drafts are made of them.
#pragma once

#include <span>
#include <vector>

#include "engine/base/types.h"
#include "kernels/ops.h"

namespace engine {

/// The likeliest first, each with its probability; of equal logits the lowest id first.
struct RankedTokens {
  std::vector<TokenId> token;
  std::vector<double> p;  // sums to 1 over the whole distribution, of which these are a part
};

/// What a device said of one row (kernels::Ops::rank).
/// @param tokens  [ranking.n]
RankedTokens ranked_of(const kernels::Ranking& ranking,
                       const kernels::RankedToken* tokens,
                       float temperature);

/// The n largest logits, on the host. Fewer where the vocabulary is smaller, and none where a logit
/// is NaN or +inf.
RankedTokens ranked_tokens(std::span<const float> logits, int n);

}  // namespace engine

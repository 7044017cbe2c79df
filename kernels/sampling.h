// The distribution a token is drawn from: repetition penalty, temperature, top-k, top-p, min-p, in that
// order. Slow and plain: `pick` is checked against it, and decoders that need
// whole distributions (rejection mode) use it.
//   order   tokens compare by (logit descending, id ascending) wherever a cut needs an order
//   top-k   exactly the first k;  top-p: of what top-k kept, the token that crosses stays
//   min-p   of what is left, tokens at least min_p times as probable as the best
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"

namespace kernels {

/// Below this a temperature means: the largest logit.
inline constexpr float kGreedyTemperature = 1e-5f;

/// First index of a NaN or +inf in logits[0, n_valid), or -1.
int first_bad_logit(std::span<const float> logits, int n_valid);

/// logits[0, n_valid) after the repetition penalty, with -inf for every token that a filter drops.
/// Filters are off when greedy. `kept` is resized to n_valid.
/// @return false  if a logit is NaN or +inf, or all are -inf; `kept` then means nothing
bool filter_logits(std::span<const float> logits,
                   int n_valid,
                   const PickRow& row,
                   std::vector<float>& kept);

/// Probabilities over logits.size() tokens, 0 for those dropped and those >= n_valid; sum 1.
/// Greedy: 1 at the largest logit, ties to the lowest id. Empty where filter_logits says false.
std::vector<double> filtered_distribution(std::span<const float> logits,
                                          int n_valid,
                                          const PickRow& row);

/// The likeliest tokens that the filters keep, as many as `tokens` has room for; the plain form of
/// Ops::rank, and what it does on the CPU. The sum runs in order of ids, so a token's probability
/// by it has the bits of filtered_distribution().
Ranking rank_logits(std::span<const float> logits,
                    int n_valid,
                    const PickRow& row,
                    std::span<RankedToken> tokens);

/// What a ranked token's probability is.
/// @param best         the first token's logit
/// @param temperature  as the row was asked with
double probability_of(const RankedToken& token,
                      float best,
                      const Ranking& distribution,
                      float temperature);

}  // namespace kernels

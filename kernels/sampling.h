// The distribution that a token is sampled from: repetition penalty, temperature, top-k, top-p, min-p, in that order.
// This is the slow reference: tests compare `pick` with it, and decoders in rejection mode use its distributions.
//   order   tokens are sorted by logit, largest first; ties go to the lowest id
//   top-k   keeps exactly the first k
//   top-p   keeps the fewest leading tokens of these whose probabilities sum to at least top_p
//   min-p   of these, keeps the tokens whose probability is at least min_p times that of the best
//           token
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"

namespace kernels {

/// At any smaller temperature decoding is greedy: the token with the largest logit is chosen.
inline constexpr float kGreedyTemperature = 1e-5f;

/// First index of a NaN or +inf in logits[0, n_valid), or -1.
int first_bad_logit(std::span<const float> logits, int n_valid);

/// Writes logits[0, n_valid) after the repetition penalty to `kept`, with -inf for every token that a filter drops.
/// A greedy row has no filters.
/// @return false  if a logit is NaN or +inf, or all are -inf; `kept` is then undefined
bool filter_logits(std::span<const float> logits,
                   int n_valid,
                   const PickRow& row,
                   std::vector<float>& kept);

/// Probabilities of logits.size() tokens with sum 1; dropped tokens and tokens >= n_valid have 0.
/// Greedy: 1 at the largest logit; ties go to the lowest id. Empty if filter_logits() returns false.
std::vector<double> filtered_distribution(std::span<const float> logits,
                                          int n_valid,
                                          const PickRow& row);

/// Fills `tokens` with the most likely tokens that the filters keep. The reference for Ops::rank,
/// and its CPU version. Probabilities are summed in order of ids, so probability_of() equals
/// filtered_distribution() bit for bit.
Ranking rank_logits(std::span<const float> logits,
                    int n_valid,
                    const PickRow& row,
                    std::span<RankedToken> tokens);

/// The probability of a ranked token.
/// @param best         logit of the first token
/// @param temperature  of the row's PickRow
double probability_of(const RankedToken& token,
                      float best,
                      const Ranking& distribution,
                      float temperature);

}  // namespace kernels

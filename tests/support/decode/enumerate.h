// Enumerates every outcome of code that draws uniform numbers, with its exact probability. The code
// under test passes the threshold with which it compares a number. The enumeration runs the code
// once with a number below the threshold and once with a number above it.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/decode/verify/sampling.h"

namespace engine::test {

using Distribution = std::map<std::vector<TokenId>, double>;

/// @param experiment  run once per outcome; must be deterministic given its numbers
/// @return            probability of each result
Distribution enumerate(const std::function<std::vector<TokenId>(UniformSource&)>& experiment);

/// The same, with the numbers of a seed: they are functions of use, position and index, as those of
/// PhiloxUniforms. Two runs in one experiment so have the same numbers.
Distribution enumerate_seeds(const std::function<std::vector<TokenId>(UniformSource&)>& experiment);

/// Distribution of a result made in steps that depend only on the current state. States reached in
/// several ways are continued once, with their probabilities summed.
/// @param step     returns the state after one further step; run once per outcome, as in
///   enumerate()
/// @param is_done  true for final states
/// @return         probability of each final state
Distribution enumerate_steps(
    const std::function<std::vector<TokenId>(const std::vector<TokenId>&, UniformSource&)>& step,
    const std::vector<TokenId>& begin,
    const std::function<bool(const std::vector<TokenId>&)>& is_done);

/// Largest absolute difference of two distributions.
double distance(const Distribution& a, const Distribution& b);
/// Total variation distance: half the sum of absolute differences.
double total_variation(const Distribution& a, const Distribution& b);

/// Distribution of the first `n` tokens of plain sampling, by the chain rule; softmax in f64,
/// without filters.
Distribution plain_distribution(
    const std::function<std::vector<double>(std::span<const TokenId>)>& next,
    const std::vector<TokenId>& prompt,
    int n);

}  // namespace engine::test

// Walks every outcome of code that draws uniform numbers, with the exact probability of each: the
// code under test says what a number will be compared with, and is given one number of each side.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "engine/decode/verify/sampling.h"

namespace engine::test {

using Distribution = std::map<std::vector<TokenId>, double>;

/// @param experiment  run once an outcome; the same numbers must lead it the same way
/// @return            probability of each result
Distribution enumerate(const std::function<std::vector<TokenId>(UniformSource&)>& experiment);

/// The distribution of what is made in steps, each of which depends on what there is alone: equal states are
/// walked on from once, with the probabilities of all ways that led there summed.
/// @param step     what there is behind one step more; run once an outcome of it, as in enumerate()
/// @param is_done  whether there is no further step
/// @return         probability of each state that is done
Distribution enumerate_steps(
    const std::function<std::vector<TokenId>(const std::vector<TokenId>&, UniformSource&)>& step,
    const std::vector<TokenId>& begin,
    const std::function<bool(const std::vector<TokenId>&)>& is_done);

/// The largest difference of two distributions.
double distance(const Distribution& a, const Distribution& b);
/// Half the sum of all differences: what the best test can tell of them.
double total_variation(const Distribution& a, const Distribution& b);

/// The distribution of the first `n` tokens of plain sampling, by the chain rule. Softmax in f64, without
/// filters.
Distribution plain_distribution(
    const std::function<std::vector<double>(std::span<const TokenId>)>& next,
    const std::vector<TokenId>& prompt,
    int n);

}  // namespace engine::test

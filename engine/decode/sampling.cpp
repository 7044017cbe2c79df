#include "engine/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace engine {
namespace {

/// Scores after the penalty and temperature, f64.
std::vector<double> scores_of(std::span<const float> logits,
                              const Sampling& sampling,
                              std::span<const TokenId> history) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (sampling.repetition_penalty != 1.0f) {
    std::vector<bool> seen(scores.size());
    for (const TokenId token : history) {
      const auto v = static_cast<std::size_t>(token);
      if (seen[v]) continue;
      seen[v] = true;
      // In f32, as the kernels' pick does, so that both see the same scores.
      const float score = logits[v];
      scores[v] =
          score < 0 ? score * sampling.repetition_penalty : score / sampling.repetition_penalty;
    }
  }
  if (!sampling.greedy()) {
    for (double& s : scores) s /= static_cast<double>(sampling.temperature);
  }
  return scores;
}

void normalise(std::vector<double>& law) {
  const double sum = std::accumulate(law.begin(), law.end(), 0.0);
  for (double& p : law) p /= sum;
}

}  // namespace

std::vector<double> token_law(std::span<const float> logits,
                              const Sampling& sampling,
                              std::span<const TokenId> history) {
  const std::vector<double> scores = scores_of(logits, sampling, history);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto higher = [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::vector<double> law(scores.size());
  if (sampling.greedy()) {
    law[*std::min_element(order.begin(), order.end(), higher)] = 1;
    return law;
  }
  const bool few = sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < order.size();
  const auto n_kept = few ? static_cast<std::size_t>(sampling.top_k) : order.size();
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(n_kept);
  if (few) {
    std::partial_sort(order.begin(), middle, order.end(), higher);
    order.resize(n_kept);
  } else if (sampling.top_p < 1) {
    std::sort(order.begin(), order.end(), higher);
  } else {
    std::iter_swap(order.begin(), std::min_element(order.begin(), order.end(), higher));
  }
  const double top = scores[order[0]];
  ensure(std::isfinite(top), "a law needs a finite largest logit");
  double sum = 0;
  for (const std::size_t v : order) sum += law[v] = std::exp(scores[v] - top);
  double before = 0;  // probability of the tokens ranked higher
  for (std::size_t rank = 0; rank < order.size(); rank++) {
    const std::size_t v = order[rank];
    const double weight = law[v];
    // The token that crosses the top_p threshold is kept, and the largest always.
    const bool keep =
        rank == 0 || ((sampling.top_p >= 1 || before < static_cast<double>(sampling.top_p) * sum) &&
                      weight >= static_cast<double>(sampling.min_p));
    before += weight;
    if (!keep) law[v] = 0;
  }
  normalise(law);
  return law;
}

double PhiloxUniforms::accept(std::uint32_t position, std::uint32_t index, double /*threshold*/) {
  return kernels::uniform_from_bits(kernels::random_bits(
      seed_, static_cast<std::uint32_t>(kernels::RandomStream::AcceptUniform), position, index));
}

double PhiloxUniforms::residual(std::uint32_t position, std::span<const double> /*law*/) {
  return kernels::uniform_from_bits(kernels::random_bits(
      seed_, static_cast<std::uint32_t>(kernels::RandomStream::Residual), position, 0));
}

TokenId draw(std::span<const double> law, double u) {
  const double target = u * std::accumulate(law.begin(), law.end(), 0.0);
  double below = 0;
  TokenId last = -1;
  for (std::size_t v = 0; v < law.size(); v++) {
    if (law[v] <= 0) continue;
    last = static_cast<TokenId>(v);
    below += law[v];
    if (target < below) break;
  }
  ensure(last >= 0, "a law to draw from needs a positive part");
  return last;
}

TokenId random_token(std::span<const TokenId> tokens,
                     std::uint64_t seed,
                     kernels::RandomStream stream,
                     std::uint32_t position,
                     std::uint32_t index) {
  const std::uint64_t bits =
      kernels::random_bits(seed, static_cast<std::uint32_t>(stream), position, index);
  return tokens[static_cast<std::size_t>((bits * tokens.size()) >> 32)];
}

}  // namespace engine

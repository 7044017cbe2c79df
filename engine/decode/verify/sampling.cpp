#include "engine/decode/verify/sampling.h"

#include <numeric>

#include "kernels/sampling.h"

namespace engine {

bool rejects(const Sampling& sampling) {
  return sampling.mode == Sampling::Mode::Rejection && !sampling.greedy();
}

std::vector<double> token_distribution(std::span<const float> logits,
                                       const Sampling& sampling,
                                       std::span<const TokenId> history) {
  kernels::PickRow row;
  row.temperature = sampling.temperature;
  row.top_k = sampling.top_k;
  row.top_p = sampling.top_p;
  row.min_p = sampling.min_p;
  row.repetition_penalty = sampling.repetition_penalty;
  row.history = history.data();
  row.n_history = static_cast<int>(history.size());
  std::vector<double> distribution =
      kernels::filtered_distribution(logits, static_cast<int>(logits.size()), row);
  if (distribution.empty()) {
    throw Error(ErrorCode::BadInput,
                "logits: found a NaN or no finite value where a distribution was "
                "needed; are the weights damaged?");
  }
  return distribution;
}

double PhiloxUniforms::accept(std::uint32_t position, std::uint32_t index, double /*threshold*/) {
  return kernels::uniform_from_bits(kernels::random_bits(
      seed_, static_cast<std::uint32_t>(kernels::RandomStream::AcceptUniform), position, index));
}

double PhiloxUniforms::residual(std::uint32_t position, std::span<const double> /*distribution*/) {
  return kernels::uniform_from_bits(kernels::random_bits(
      seed_, static_cast<std::uint32_t>(kernels::RandomStream::Residual), position, 0));
}

double PhiloxUniforms::proposal(std::uint32_t position,
                                std::uint32_t index,
                                std::span<const double> /*distribution*/) {
  return kernels::uniform_from_bits(kernels::random_bits(
      seed_, static_cast<std::uint32_t>(kernels::RandomStream::DraftGumbel), position, index));
}

TokenId draw(std::span<const double> distribution, double u) {
  const double target = u * std::accumulate(distribution.begin(), distribution.end(), 0.0);
  double below = 0;
  TokenId last = -1;
  for (std::size_t v = 0; v < distribution.size(); v++) {
    if (distribution[v] <= 0) continue;
    last = static_cast<TokenId>(v);
    below += distribution[v];
    if (target < below) break;
  }
  ensure(last >= 0, "a distribution to draw from needs a positive part");
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

#include "engine/model/ranked.h"

#include "kernels/sampling.h"

namespace engine {

RankedTokens ranked_of(const kernels::Ranking& ranking,
                       const kernels::RankedToken* tokens,
                       float temperature) {
  RankedTokens ranked;
  for (const kernels::RankedToken& one : std::span(tokens, static_cast<std::size_t>(ranking.n))) {
    ranked.token.push_back(one.id);
    ranked.p.push_back(kernels::probability_of(one, tokens[0].logit, ranking, temperature));
  }
  return ranked;
}

RankedTokens ranked_tokens(std::span<const float> logits, int n) {
  std::vector<kernels::RankedToken> tokens(static_cast<std::size_t>(n));
  const kernels::Ranking ranking =
      kernels::rank_logits(logits, static_cast<int>(logits.size()), {}, tokens);
  return ranked_of(ranking, tokens.data(), 1);
}

}  // namespace engine

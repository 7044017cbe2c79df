// The default ranking: on the host, row by row.
#include "engine/model/draft_heads.h"

#include <cmath>
#include <utility>

namespace engine {
namespace {

std::vector<RankedTokens> ranked_one_by_one(std::span<const float> logits, int vocab_size, int k) {
  const auto n = static_cast<std::size_t>(vocab_size);
  std::vector<RankedTokens> ranked;
  for (std::size_t begin = 0; begin < logits.size(); begin += n) {
    const auto row = logits.subspan(begin, n);
    RankedTokens of_row = ranked_tokens(row, k);
    while (!of_row.token.empty() &&
           std::isinf(row[static_cast<std::size_t>(of_row.token.back())])) {
      of_row.token.pop_back();
      of_row.p.pop_back();
    }
    ranked.push_back(std::move(of_row));
  }
  return ranked;
}

}  // namespace

std::vector<RankedTokens> MedusaHeads::ranked(std::span<const float> hidden, int n_heads, int k) {
  return ranked_one_by_one(logits(hidden, n_heads), vocab_size(), k);
}

std::vector<RankedTokens> ChimeraSequence::ranked_level(std::span<const int> parent,
                                                        std::span<const TokenId> grams,
                                                        int k) {
  const std::vector<float> logits = level(parent, grams);
  return ranked_one_by_one(logits, static_cast<int>(logits.size() / parent.size()), k);
}

}  // namespace engine

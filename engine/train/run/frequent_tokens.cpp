#include "engine/train/run/frequent_tokens.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "engine/base/types.h"

namespace engine {

std::vector<TokenId> frequent_tokens(std::span<const OwnOutput> texts, int vocab_size, int count) {
  ensure(count > 0 && count <= vocab_size, "count must be from 1 to the size of the vocabulary");
  constexpr std::int64_t kEndToken = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> n(static_cast<std::size_t>(vocab_size), 0);
  std::vector<TokenId> end_tokens;
  for (const OwnOutput& text : texts) {
    for (const TokenId token :
         std::span(text.tokens).subspan(static_cast<std::size_t>(text.n_prompt))) {
      if (token < 0 || token >= vocab_size)
        throw Error(ErrorCode::BadInput, "texts: tokens: found " + std::to_string(token) +
                                             ", expected 0 to " + std::to_string(vocab_size - 1) +
                                             "; were they written by another target?");
      n[static_cast<std::size_t>(token)]++;
    }
    if (text.ended) end_tokens.push_back(text.tokens.back());
  }
  for (const TokenId token : end_tokens) n[static_cast<std::size_t>(token)] = kEndToken;
  const auto n_ends = std::ranges::count(n, kEndToken);
  if (n_ends > count)
    throw Error(ErrorCode::BadInput, "output_tokens: found " + std::to_string(count) +
                                         ", expected at least the " + std::to_string(n_ends) +
                                         " end tokens of the texts");
  std::vector<TokenId> ids(n.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto more_frequent = [&](TokenId a, TokenId b) {
    const std::int64_t n_a = n[static_cast<std::size_t>(a)], n_b = n[static_cast<std::size_t>(b)];
    return n_a != n_b ? n_a > n_b : a < b;
  };
  std::ranges::nth_element(ids, ids.begin() + count - 1, more_frequent);
  ids.resize(static_cast<std::size_t>(count));
  std::ranges::sort(ids);
  return ids;
}

}  // namespace engine

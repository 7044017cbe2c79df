// Rows of an output matrix that has rows for some tokens only.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "engine/base/types.h"

namespace engine {

/// The row of a token; nullopt: it has none.
/// @param tokens  the token of each row, ascending
inline std::optional<int> output_row(std::span<const TokenId> tokens, TokenId token) {
  const auto at = std::ranges::lower_bound(tokens, token);
  if (at == tokens.end() || *at != token) return std::nullopt;
  return static_cast<int>(at - tokens.begin());
}

/// The number of rows whose tokens have ids below n_tokens. They precede the others.
inline int n_output_rows(std::span<const TokenId> tokens, int n_tokens) {
  return static_cast<int>(std::ranges::lower_bound(tokens, n_tokens) - tokens.begin());
}

}  // namespace engine

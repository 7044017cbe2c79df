#include "engine/run/agreement.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace engine {
namespace {

/// The first n tokens, or all if there are fewer.
std::span<const TokenId> at_most(std::span<const TokenId> tokens, std::size_t n) {
  return tokens.first(std::min(n, tokens.size()));
}

}  // namespace

bool comparable(const Sampling& sampling) {
  return sampling.greedy() || sampling.mode == Sampling::Mode::Coupled;
}

Agreement agreement_of(Ending found, Ending expected) {
  // For a stopped run it is unknown which tokens would have followed, so only the tokens that it
  // has are compared.
  const std::size_t n_found = found.tokens.size(), n_expected = expected.tokens.size();
  if (!found.whole) expected.tokens = at_most(expected.tokens, n_found);
  if (!expected.whole) found.tokens = at_most(found.tokens, n_expected);

  Agreement agreement{
      .n_compared = static_cast<int>(expected.tokens.size()),
      .first_difference = first_difference(found.tokens, expected.tokens),
  };
  if (agreement.first_difference < 0) return agreement;
  const auto at = static_cast<std::size_t>(agreement.first_difference);
  if (at < found.tokens.size()) agreement.found = found.tokens[at];
  if (at < expected.tokens.size()) agreement.expected = expected.tokens[at];
  return agreement;
}

Agreement agree(RunResult& result, const RunResult& ar) {
  const Agreement agreement =
      agreement_of({result.tokens, result.whole()}, {ar.tokens, ar.whole()});
  result.identical_to_ar = agreement.first_difference < 0;
  if (agreement.first_difference < 0) return agreement;
  const auto margin = [&](const std::vector<float>& margins) {
    const auto at = static_cast<std::size_t>(agreement.first_difference);
    return at < margins.size() ? std::optional(margins[at]) : std::nullopt;
  };
  result.difference =
      Difference{agreement.first_difference, margin(result.margins), margin(ar.margins)};
  return agreement;
}

}  // namespace engine

#include "tests/support/models/toy_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/decode/verify/sampling.h"

namespace engine::test {

ToyShape draft_of(ToyShape target, float blur) {
  target.blur = blur;
  return target;
}

void ToyCache::commit(std::span<const int> path) {
  int parent = -1;
  for (const int row : path) {
    ensure(row >= 0 && row < in_flight.n_rows(), "toy cache: a committed row was not evaluated");
    ensure(in_flight.parent[static_cast<std::size_t>(row)] == parent,
           "toy cache: committed rows are not a chain that starts at the prefix");
    tokens.push_back(in_flight.token[static_cast<std::size_t>(row)]);
    parent = row;
  }
  in_flight.clear();
}

void ToyCache::truncate(int length) {
  ensure(length >= 0 && length <= this->length(), "toy cache: truncation beyond its length");
  tokens.resize(static_cast<std::size_t>(length));
  in_flight.clear();
}

namespace {

/// All tokens, the largest logit first; ties by id.
std::vector<TokenId> by_logit(const std::vector<float>& logits) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](TokenId a, TokenId b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  return ids;
}

}  // namespace

std::vector<StepOutput> ToyModel::forward(std::span<const BatchItem> items, Wants wants) {
  n_forwards++;
  int rows = 0;
  std::vector<StepOutput> outs;
  for (const BatchItem& item : items) {
    rows += item.tree->n_rows();
    outs.push_back(answer(item, wants));
  }
  n_rows.push_back(rows);
  return outs;
}

StepOutput ToyModel::answer(const BatchItem& item, Wants wants) const {
  auto& cache = dynamic_cast<ToyCache&>(*item.cache);
  const TokenTree& tree = *item.tree;
  check(tree, shape_.vocab);
  // The decoder's prefix must equal the cache.
  ensure(std::vector(item.prefix.begin(), item.prefix.end()) == cache.tokens,
         "toy model: the cache's tokens are not the prefix");
  cache.in_flight = tree;
  StepOutput out;
  out.vocab_size = shape_.vocab;
  for (int r = 0; r < tree.n_rows(); r++) {
    // Row r must see each position 0 .. pos once: the prefix and its ancestors.
    const std::vector<int> chain = chain_of(tree, r);
    ensure(tree.parent[static_cast<std::size_t>(chain[0])] == -1,
           "toy model: a chain does not start at the prefix");
    std::vector<TokenId> text = cache.tokens;
    for (const int row : chain) text.push_back(tree.token[static_cast<std::size_t>(row)]);
    ensure(static_cast<int>(text.size()) <= shape_.max_seq_len,
           "toy model: a row is outside the context");
    const std::vector<float> logits = logits_after(text);
    Sampling sampling = item.sampling;
    if (!item.greedy_rows.empty() && item.greedy_rows[static_cast<std::size_t>(r)]) {
      sampling.temperature = 0;
    }
    const bool picks = item.pick_rows && wants.n_ranked == 0;
    out.picked.push_back(picks ? pick_token(logits, sampling, item.stream, text)
                               : kernels::Picked{});
    if (wants.n_ranked > 0) {
      if (sampling.greedy())
        sampling = {.temperature = 1, .repetition_penalty = sampling.repetition_penalty};
      out.ranked.push_back(
          rank_distribution(token_distribution(logits, sampling, text), wants.n_ranked));
    }
    if (wants.n_top > 0) {
      std::vector<TokenId> ids = by_logit(logits);
      ids.resize(static_cast<std::size_t>(wants.n_top), -1);
      out.top.insert(out.top.end(), ids.begin(), ids.end());
    }
    if (wants.hidden || r == item.hidden_of) {
      const std::vector<float> hidden = hidden_of(text);
      out.hidden.insert(out.hidden.end(), hidden.begin(), hidden.end());
    }
    if (wants.logits) out.logits.insert(out.logits.end(), logits.begin(), logits.end());
  }
  return out;
}

RankedTokens rank_distribution(std::vector<double> distribution, int n) {
  RankedTokens ranked;
  for (int i = 0; i < n; i++) {
    const auto best = std::ranges::max_element(distribution);
    if (*best <= 0) break;
    ranked.token.push_back(static_cast<TokenId>(best - distribution.begin()));
    ranked.p.push_back(std::exchange(*best, 0));
  }
  return ranked;
}

std::vector<float> ToyModel::hidden_of(std::span<const TokenId> text) {
  std::vector<float> hidden{static_cast<float>(text.size())};
  for (std::size_t i = kHiddenDim - 1; i > 0; i--)
    hidden.push_back(i > text.size() ? -1 : static_cast<float>(text[text.size() - i]));
  return hidden;
}

std::vector<float> ToyModel::logits_after(std::span<const TokenId> text) const {
  std::uint32_t hash = 17;
  const auto n = std::min(text.size(), static_cast<std::size_t>(shape_.context));
  for (const TokenId token : text.last(n)) {
    hash = kernels::random_bits(shape_.seed, 77, hash, static_cast<std::uint32_t>(token));
  }
  std::vector<float> logits;
  for (int v = 0; v < shape_.vocab; v++) {
    if (!proposes(v)) {
      logits.push_back(-std::numeric_limits<float>::infinity());
      continue;
    }
    const auto bits = kernels::random_bits(shape_.seed, 78, hash, static_cast<std::uint32_t>(v));
    const auto other = kernels::random_bits(shape_.seed, 79, hash, static_cast<std::uint32_t>(v));
    logits.push_back(shape_.spread * static_cast<float>(kernels::uniform_from_bits(bits) - 0.5) +
                     shape_.blur * static_cast<float>(kernels::uniform_from_bits(other) - 0.5));
  }
  return logits;
}

kernels::Picked pick_token(std::span<const float> logits,
                           const Sampling& sampling,
                           kernels::RandomStream stream,
                           std::span<const TokenId> history) {
  const std::vector<double> distribution = token_distribution(logits, sampling, history);
  Sampling reporting = sampling;  // the probability of greedy choices is reported at temperature 1
  if (sampling.greedy())
    reporting = {.temperature = 1, .repetition_penalty = reporting.repetition_penalty};
  const std::vector<double> reported_distribution = token_distribution(logits, reporting, history);
  kernels::Picked picked;
  double best = -std::numeric_limits<double>::infinity();
  double second = best;
  for (std::size_t v = 0; v < distribution.size(); v++) {
    if (distribution[v] <= 0) continue;
    // log p differs from the penalised logit / T by a constant, so the argmax is the same.
    double score = std::log(distribution[v]);
    if (!sampling.greedy()) {
      score += kernels::gumbel_from_bits(kernels::random_bits(
          sampling.seed, static_cast<std::uint32_t>(stream),
          static_cast<std::uint32_t>(history.size()), static_cast<std::uint32_t>(v)));
    }
    if (score > best) {
      second = best;
      best = score;
      picked.id = static_cast<std::int32_t>(v);
      picked.logp = static_cast<float>(std::log(reported_distribution[v]));
    } else if (score > second) {
      second = score;
    }
  }
  picked.score = static_cast<float>(best);
  picked.margin = static_cast<float>(best - second);
  return picked;
}

}  // namespace engine::test

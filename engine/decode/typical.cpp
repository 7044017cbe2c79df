#include "engine/decode/typical.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace engine {
namespace {

using Root = TypicalSettings::Root;

kernels::TakeLeft take_of(const Sampling& sampling, const TypicalSettings& settings) {
  if (settings.root == Root::Argmax || sampling.greedy()) return kernels::TakeLeft::Likeliest;
  return settings.root == Root::Typical ? kernels::TakeLeft::LikelyEnough : kernels::TakeLeft::Draw;
}

/// Where typical_questions() have a row among the candidates: behind all rows that hang on rows
/// before its parent, and its own siblings before it.
std::vector<std::size_t> places_of(const TokenTree& tree) {
  std::vector<std::size_t> rows(tree.token.size()), place(tree.token.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return tree.parent[row]; });
  for (std::size_t i = 1; i < rows.size(); i++) place[rows[i]] = i - 1;  // row 0 hangs on none
  return place;
}

/// The target's law behind a row.
std::vector<double> law_behind(std::span<const TokenId> tokens,
                               const TokenTree& tree,
                               const StepOutput& out,
                               const Sampling& sampling,
                               int row) {
  std::vector<TokenId> history(tokens.begin(), tokens.end());
  const std::vector<int> chain = chain_of(tree, row);
  for (std::size_t i = 1; i < chain.size(); i++)
    history.push_back(tree.token[static_cast<std::size_t>(chain[i])]);
  return token_law(out.logits_of(row), sampling, history);
}

/// The token behind the kept ones.
/// @param uniform  what was drawn for it, where something was
TokenId root_token(const std::vector<double>& law,
                   const Sampling& sampling,
                   const TypicalSettings& settings,
                   std::uint32_t position,
                   UniformSource& uniforms,
                   float& uniform) {
  const kernels::TakeLeft take = take_of(sampling, settings);
  if (take == kernels::TakeLeft::Likeliest)
    return static_cast<TokenId>(std::ranges::max_element(law) - law.begin());
  std::vector<double> left = law;
  if (take == kernels::TakeLeft::LikelyEnough) {
    const double threshold = typical_threshold(law, settings);
    for (double& p : left) p = p > threshold ? p : 0;
    if (std::ranges::max(left) <= 0) left = law;  // nothing is likely enough
  }
  const double u = uniforms.residual(position, left);
  uniform = static_cast<float>(u);
  return draw(left, u);
}

}  // namespace

double typical_threshold(std::span<const double> law, const TypicalSettings& settings) {
  double entropy = 0;
  for (const double p : law) entropy -= p > 0 ? p * std::log(p) : 0;
  return std::min(settings.epsilon, settings.delta * std::exp(-entropy));
}

Questions typical_questions(std::span<const TokenId> tokens,
                            const TokenTree& tree,
                            const Sampling& sampling,
                            const TypicalSettings& settings,
                            UniformSource& uniforms) {
  Questions questions;
  for (int row = 0; row < tree.n_rows(); row++) {
    const auto depth = static_cast<std::uint32_t>(chain_of(tree, row).size()) - 1;
    const auto position = static_cast<std::uint32_t>(tokens.size()) + depth;
    questions.add({.row = row,
                   .rule = kernels::JudgeRule::Typical,
                   .take = take_of(sampling, settings),
                   .uniform = uniforms.residual(position, {}),
                   .epsilon = settings.epsilon,
                   .delta = settings.delta});
    for (std::size_t r = 1; r < tree.token.size(); r++)
      if (tree.parent[r] == row) questions.add_candidate(tree.token[r], 0);
  }
  return questions;
}

Decision accept_typical(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        const StepOutput& out,
                        const Sampling& sampling,
                        const TypicalSettings& settings,
                        UniformSource& uniforms) {
  const auto n = tree.token.size();
  const bool there = !out.verdicts.nodes.empty();
  ensure(there || out.logits.size() == n * static_cast<std::size_t>(out.vocab_size),
         "typical acceptance needs verdicts, or every row's logits");
  ensure(!there || (out.verdicts.nodes.size() == n && out.verdicts.candidates.size() == n - 1),
         "verdicts are of typical_questions()");
  const std::vector<std::size_t> place = places_of(tree);
  // Of rows kept so far: their depth from 1 (0: not kept), and their path's log probability.
  std::vector<int> depth(n);
  std::vector<double> logp(n);
  std::vector<std::vector<double>> laws(n);  // on the host, as they are needed
  const auto law = [&](std::size_t row) -> const std::vector<double>& {
    if (laws[row].empty())
      laws[row] = law_behind(tokens, tree, out, sampling, static_cast<int>(row));
    return laws[row];
  };
  Decision decision;
  decision.row_p.assign(n, -1);
  depth[0] = 1;
  std::size_t best = 0;
  for (std::size_t r = 1; r < n; r++) {
    const auto parent = static_cast<std::size_t>(tree.parent[r]);
    if (depth[parent] == 0) continue;
    const double p = there ? out.verdicts.candidates[place[r]].p
                           : law(parent)[static_cast<std::size_t>(tree.token[r])];
    decision.row_p[r] = static_cast<float>(p);
    const bool is_typical = there ? out.verdicts.candidates[place[r]].chance > 0
                                  : p > typical_threshold(law(parent), settings);
    if (!is_typical) continue;
    depth[r] = depth[parent] + 1;
    logp[r] = logp[parent] + std::log(p);
    if (depth[r] > depth[best] || (depth[r] == depth[best] && logp[r] > logp[best])) best = r;
  }
  decision.path = chain_of(tree, static_cast<int>(best));
  for (std::size_t i = 1; i < decision.path.size(); i++) {
    const auto row = static_cast<std::size_t>(decision.path[i]);
    decision.emitted.push_back(tree.token[row]);
    decision.logp.push_back(
        static_cast<float>(logp[row] - logp[static_cast<std::size_t>(tree.parent[row])]));
  }

  const auto position = static_cast<std::uint32_t>(tokens.size() + decision.emitted.size());
  const kernels::Picked& pick = out.picked[best];
  TokenId next = pick.id;
  // The pick's, by the same law; a greedy one is one at it.
  double next_logp = sampling.greedy() ? 0 : static_cast<double>(pick.logp);
  if (settings.root == Root::Sample && !rejects(sampling)) {
    if (!there) next_logp = std::log(law(best)[static_cast<std::size_t>(next)]);
  } else if (there) {
    next = out.verdicts.nodes[best].token;
    next_logp = std::log(out.verdicts.nodes[best].p);
    if (take_of(sampling, settings) != kernels::TakeLeft::Likeliest)
      decision.last_uniform = static_cast<float>(uniforms.residual(position, {}));
  } else {
    next = root_token(law(best), sampling, settings, position, uniforms, decision.last_uniform);
    next_logp = std::log(law(best)[static_cast<std::size_t>(next)]);
  }
  decision.emitted.push_back(next);
  decision.logp.push_back(static_cast<float>(next_logp));
  return decision;
}

}  // namespace engine

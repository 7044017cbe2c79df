#include "engine/decode/typical.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace engine {
namespace {

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
  using Root = TypicalSettings::Root;
  if (settings.root == Root::Argmax || sampling.greedy())
    return static_cast<TokenId>(std::ranges::max_element(law) - law.begin());
  std::vector<double> left = law;
  if (settings.root == Root::Typical) {
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

Decision accept_typical(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        const StepOutput& out,
                        const Sampling& sampling,
                        const TypicalSettings& settings,
                        UniformSource& uniforms) {
  ensure(out.logits.size() == tree.token.size() * static_cast<std::size_t>(out.vocab_size),
         "typical acceptance needs every row's logits");
  const auto n = tree.token.size();
  // Of rows kept so far: their depth from 1 (0: not kept), and their path's log probability.
  std::vector<int> depth(n);
  std::vector<double> logp(n);
  std::vector<std::vector<double>> law(n);
  Decision decision;
  decision.row_p.assign(n, -1);
  depth[0] = 1;
  std::size_t best = 0;
  for (std::size_t r = 1; r < n; r++) {
    const auto parent = static_cast<std::size_t>(tree.parent[r]);
    if (depth[parent] == 0) continue;
    if (law[parent].empty())
      law[parent] = law_behind(tokens, tree, out, sampling, static_cast<int>(parent));
    const double p = law[parent][static_cast<std::size_t>(tree.token[r])];
    decision.row_p[r] = static_cast<float>(p);
    if (!(p > typical_threshold(law[parent], settings))) continue;
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

  if (law[best].empty())
    law[best] = law_behind(tokens, tree, out, sampling, static_cast<int>(best));
  const auto position = static_cast<std::uint32_t>(tokens.size() + decision.emitted.size());
  const bool picks = settings.root == TypicalSettings::Root::Sample && !rejects(sampling);
  const TokenId next =
      picks ? out.picked[best].id
            : root_token(law[best], sampling, settings, position, uniforms, decision.last_uniform);
  decision.emitted.push_back(next);
  decision.logp.push_back(static_cast<float>(std::log(law[best][static_cast<std::size_t>(next)])));
  return decision;
}

}  // namespace engine

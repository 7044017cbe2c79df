#include "engine/decode/verify/typical.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace engine {
namespace {

using Root = TypicalSettings::Root;

kernels::ResidualChoice choice_of(const Sampling& sampling, const TypicalSettings& settings) {
  if (settings.root == Root::Argmax || sampling.greedy()) return kernels::ResidualChoice::Argmax;
  return settings.root == Root::Typical ? kernels::ResidualChoice::Typical
                                        : kernels::ResidualChoice::Sample;
}

/// [n_rows] each row's index among the candidates of typical_verify_request(), which are ordered by
/// parent, then by row.
std::vector<std::size_t> places_of(const TokenTree& tree) {
  std::vector<std::size_t> rows(tree.token.size()), place(tree.token.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return tree.parent[row]; });
  for (std::size_t i = 1; i < rows.size(); i++) place[rows[i]] = i - 1;  // row 0 has no parent
  return place;
}

/// The token after the accepted ones.
/// @param uniform  set to the random number, if one was drawn
TokenId root_token(const std::vector<double>& distribution,
                   const Sampling& sampling,
                   const TypicalSettings& settings,
                   std::uint32_t position,
                   UniformSource& uniforms,
                   float& uniform) {
  const kernels::ResidualChoice choice = choice_of(sampling, settings);
  if (choice == kernels::ResidualChoice::Argmax)
    return static_cast<TokenId>(std::ranges::max_element(distribution) - distribution.begin());
  std::vector<double> left = distribution;
  if (choice == kernels::ResidualChoice::Typical) {
    const double threshold = typical_threshold(distribution, settings);
    for (double& p : left) p = p > threshold ? p : 0;
    if (std::ranges::max(left) <= 0) left = distribution;  // nothing is likely enough
  }
  const double u = uniforms.residual(position, left);
  uniform = static_cast<float>(u);
  return draw(left, u);
}

/// Probabilities of rows: from the device's result, or from logits on the host, whose distributions
/// are computed on demand.
class RowProbabilities {
 public:
  RowProbabilities(std::span<const TokenId> tokens,
                   const TokenTree& tree,
                   const StepOutput& out,
                   const Sampling& sampling,
                   const TypicalSettings& settings)
      : tokens_(tokens),
        tree_(tree),
        out_(out),
        sampling_(sampling),
        settings_(settings),
        on_device_(!out.verify_result.nodes.empty()),
        place_(places_of(tree)),
        distributions_(tree.token.size()) {
    const auto n = tree.token.size();
    ensure(on_device_ || out.logits.size() == n * static_cast<std::size_t>(out.vocab_size),
           "typical acceptance needs the device's result or every row's logits");
    ensure(!on_device_ || (out.verify_result.nodes.size() == n &&
                           out.verify_result.candidates.size() == n - 1),
           "the device's result must belong to typical_verify_request()");
  }

  /// The probability of the row's token after its parent.
  double p(std::size_t row) {
    return on_device_ ? out_.verify_result.candidates[place_[row]].p
                      : distribution(parent_of(row))[static_cast<std::size_t>(tree_.token[row])];
  }
  bool is_typical(std::size_t row) {
    return on_device_ ? out_.verify_result.candidates[place_[row]].chance > 0
                      : p(row) > typical_threshold(distribution(parent_of(row)), settings_);
  }

  struct Next {
    TokenId token;
    double logp;
    float uniform = -1;  // the number that drew the token; -1: none
  };
  /// The token after the last accepted row, at `position` of the sequence.
  Next after(std::size_t row, std::uint32_t position, UniformSource& uniforms) {
    if (settings_.root == Root::Sample && !rejects(sampling_)) return picked(row);
    if (!on_device_) {
      Next next{};
      next.token =
          root_token(distribution(row), sampling_, settings_, position, uniforms, next.uniform);
      next.logp = std::log(distribution(row)[static_cast<std::size_t>(next.token)]);
      return next;
    }
    const kernels::VerifiedNode& found = out_.verify_result.nodes[row];
    Next next{.token = found.token, .logp = std::log(found.p)};
    if (choice_of(sampling_, settings_) != kernels::ResidualChoice::Argmax)
      next.uniform = static_cast<float>(uniforms.residual(position, {}));
    return next;
  }

 private:
  std::size_t parent_of(std::size_t row) const {
    return static_cast<std::size_t>(tree_.parent[row]);
  }

  Next picked(std::size_t row) {
    const kernels::Picked& pick = out_.picked[row];
    if (!on_device_)
      return {pick.id, std::log(distribution(row)[static_cast<std::size_t>(pick.id)])};
    // The pick was chosen from the same distribution; under greedy sampling its probability is 1.
    return {pick.id, sampling_.greedy() ? 0 : static_cast<double>(pick.logp)};
  }

  const std::vector<double>& distribution(std::size_t row) {
    if (!distributions_[row].empty()) return distributions_[row];
    std::vector<TokenId> history(tokens_.begin(), tokens_.end());
    const std::vector<int> chain = chain_of(tree_, static_cast<int>(row));
    for (std::size_t i = 1; i < chain.size(); i++)
      history.push_back(tree_.token[static_cast<std::size_t>(chain[i])]);
    distributions_[row] =
        token_distribution(out_.logits_of(static_cast<int>(row)), sampling_, history);
    return distributions_[row];
  }

  std::span<const TokenId> tokens_;
  const TokenTree& tree_;
  const StepOutput& out_;
  const Sampling& sampling_;
  const TypicalSettings& settings_;
  bool on_device_;
  std::vector<std::size_t> place_;
  // [n_rows] of the token after each row; empty: not computed
  std::vector<std::vector<double>> distributions_;
};

}  // namespace

double typical_threshold(std::span<const double> distribution, const TypicalSettings& settings) {
  double entropy = 0;
  for (const double p : distribution) entropy -= p > 0 ? p * std::log(p) : 0;
  return std::min(settings.epsilon, settings.delta * std::exp(-entropy));
}

VerifyRequest typical_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     const Sampling& sampling,
                                     const TypicalSettings& settings,
                                     UniformSource& uniforms) {
  VerifyRequest verify_request;
  for (int row = 0; row < tree.n_rows(); row++) {
    const auto depth = static_cast<std::uint32_t>(chain_of(tree, row).size()) - 1;
    const auto position = static_cast<std::uint32_t>(tokens.size()) + depth;
    verify_request.add({.row = row,
                        .rule = kernels::AcceptanceRule::Typical,
                        .choice = choice_of(sampling, settings),
                        .uniform = uniforms.residual(position, {}),
                        .epsilon = settings.epsilon,
                        .delta = settings.delta});
    for (std::size_t r = 1; r < tree.token.size(); r++)
      if (tree.parent[r] == row) verify_request.add_candidate(tree.token[r], 0);
  }
  return verify_request;
}

Decision accept_typical(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        const StepOutput& out,
                        const Sampling& sampling,
                        const TypicalSettings& settings,
                        UniformSource& uniforms) {
  RowProbabilities rows(tokens, tree, out, sampling, settings);
  const auto n = tree.token.size();
  // For each row: its depth (from 1) if the path to the row is accepted, else 0; and the path's log
  // probability.
  std::vector<int> depth(n);
  std::vector<double> logp(n);
  Decision decision;
  decision.row_p.assign(n, -1);
  depth[0] = 1;
  std::size_t best = 0;
  for (std::size_t r = 1; r < n; r++) {
    const auto parent = static_cast<std::size_t>(tree.parent[r]);
    if (depth[parent] == 0) continue;
    const double p = rows.p(r);
    decision.row_p[r] = static_cast<float>(p);
    if (!rows.is_typical(r)) continue;
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
  const RowProbabilities::Next next = rows.after(best, position, uniforms);
  if (next.uniform >= 0) decision.last_uniform = next.uniform;
  decision.emitted.push_back(next.token);
  decision.logp.push_back(static_cast<float>(next.logp));
  // The distributions of greedy sampling give the likeliest token probability 1. Without log
  // probabilities here, those of the target's picks are reported, as in plain decoding.
  if (sampling.greedy()) decision.logp.clear();
  return decision;
}

}  // namespace engine

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
  return settings.root == Root::Typical ? kernels::ResidualChoice::Typical : kernels::ResidualChoice::Sample;
}

/// Where typical_verify_request() have a row among the candidates: behind all rows that hang on rows
/// before its parent, and its own siblings before it.
std::vector<std::size_t> places_of(const TokenTree& tree) {
  std::vector<std::size_t> rows(tree.token.size()), place(tree.token.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return tree.parent[row]; });
  for (std::size_t i = 1; i < rows.size(); i++) place[rows[i]] = i - 1;  // row 0 hangs on none
  return place;
}

/// The token behind the kept ones.
/// @param uniform  what was drawn for it, where something was
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

/// What is known of rows: a device's verdicts, or distributions that are made here of logits as they are needed.
class JudgedRows {
 public:
  JudgedRows(std::span<const TokenId> tokens,
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
           "typical acceptance needs verdicts, or every row's logits");
    ensure(!on_device_ || (out.verify_result.nodes.size() == n &&
                           out.verify_result.candidates.size() == n - 1),
           "verdicts are of typical_questions()");
  }

  /// Of the row's token behind its parent.
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
    float uniform = -1;  // drawn for it; -1: none
  };
  /// The token behind the last row kept, which is `position` tokens into the text.
  Next behind(std::size_t row, std::uint32_t position, UniformSource& uniforms) {
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
    // The pick's, by the same distribution; a greedy one is one at it.
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
  std::vector<std::vector<double>> distributions_;  // [n_rows] behind each; empty: not made
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
  JudgedRows rows(tokens, tree, out, sampling, settings);
  const auto n = tree.token.size();
  // Of rows kept so far: their depth from 1 (0: not kept), and their path's log probability.
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
  const JudgedRows::Next next = rows.behind(best, position, uniforms);
  if (next.uniform >= 0) decision.last_uniform = next.uniform;
  decision.emitted.push_back(next.token);
  decision.logp.push_back(static_cast<float>(next.logp));
  // Greedy, what is kept is what the target picked, and the picks have the probabilities that plain
  // decoding reports; here the distribution is 1 at the likeliest token.
  if (sampling.greedy()) decision.logp.clear();
  return decision;
}

}  // namespace engine

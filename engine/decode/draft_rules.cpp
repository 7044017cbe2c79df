#include "engine/decode/draft_rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace engine {
namespace {

/// Scales to sum 1. @return false  if there is nothing to scale
bool normalise(std::vector<double>& law) {
  const double sum = std::accumulate(law.begin(), law.end(), 0.0);
  if (!(sum > 0)) return false;
  for (double& p : law) p /= sum;
  return true;
}

/// p becomes (p - q)+, scaled to 1. @return false  if nothing is left: p was q but for rounding
bool take_residual(std::vector<double>& p, std::span<const double> q) {
  std::vector<double> left(p.size());
  for (std::size_t v = 0; v < p.size(); v++) left[v] = std::max(0.0, p[v] - q[v]);
  if (!normalise(left)) return false;
  p = std::move(left);
  return true;
}

double overlap(std::span<const double> p, std::span<const double> q, double rho) {
  double beta = 0;
  for (std::size_t v = 0; v < p.size(); v++) beta += std::min(q[v], p[v] / rho);
  return beta;
}

double any_of_k(double beta, int k) {
  return 1 - std::pow(1 - std::min(beta, 1.0), k);
}

/// The tokens worth telling of two laws: those named first, then the likeliest under either.
std::vector<TokenId> worth_telling(std::vector<TokenId> named,
                                   std::span<const double> p,
                                   std::span<const double> q) {
  std::vector<TokenId> told;
  const auto add = [&told](TokenId id) {
    if (told.size() < kMaxWeighed && std::ranges::find(told, id) == told.end()) told.push_back(id);
  };
  for (const TokenId id : named) add(id);
  const auto weight = [&](TokenId id) {
    const auto v = static_cast<std::size_t>(id);
    return std::max(p[v], q.empty() ? 0.0 : q[v]);
  };
  const auto heavier = [&](TokenId a, TokenId b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
  };
  std::vector<TokenId> likeliest;  // sorted, at most kMaxWeighed
  for (TokenId id = 0; id < std::ssize(p); id++) {
    const bool full = likeliest.size() == kMaxWeighed;
    if (weight(id) <= 0 || (full && !heavier(id, likeliest.back()))) continue;
    if (full) likeliest.pop_back();
    likeliest.insert(std::ranges::upper_bound(likeliest, id, heavier), id);
  }
  for (const TokenId id : likeliest) add(id);
  return told;
}

/// One row's candidates being judged. A number equal to the chance refuses, so that a token of
/// probability 0 is never kept.
class Node {
 public:
  Node(const TokenTree& tree,
       const Candidates& candidates,
       std::vector<double> law,
       std::uint32_t position,
       UniformSource& uniforms,
       Decision& decision)
      : left(std::move(law)),
        tree_(tree),
        candidates_(candidates),
        position_(position),
        uniforms_(uniforms),
        decision_(decision) {}

  /// @return  the row kept, or -1: `left` is then what the token must be drawn from
  int judge(DraftRule rule) {
    if (candidates_.rows.empty() || rule == DraftRule::Naive) return -1;
    if (candidates_.law.empty()) return judge_certain();
    return rule == DraftRule::KSeq ? judge_k_seq() : judge_drawn(rule == DraftRule::With);
  }

  /// The token after all refusals, and the candidate that has it (-1: none).
  std::pair<TokenId, int> draw_left() {
    const double u = uniforms_.residual(position_, left);
    decision_.last_uniform = static_cast<float>(u);
    const TokenId token = draw(left, u);
    for (const int row : candidates_.rows) {
      if (token_of(row) == static_cast<std::size_t>(token)) return {token, row};
    }
    return {token, -1};
  }

  /// What was weighed, for display.
  /// @param law      the target's before anything was judged
  /// @param emitted  and whether a candidate was kept
  Weighed told(int row, std::span<const double> law, TokenId emitted, bool kept) const {
    std::vector<TokenId> named{emitted};
    for (const int r : candidates_.rows) named.push_back(static_cast<TokenId>(token_of(r)));
    Weighed weighed{.row = row};
    weighed.token = worth_telling(std::move(named), law, candidates_.law);
    const auto of = [&weighed](std::span<const double> from) {
      std::vector<float> values;
      for (const TokenId id : weighed.token)
        values.push_back(static_cast<float>(from[static_cast<std::size_t>(id)]));
      return values;
    };
    weighed.p = of(law);
    if (!candidates_.law.empty()) weighed.q = of(candidates_.law);
    if (!kept) weighed.left = of(left);
    return weighed;
  }

  std::vector<double> left;  // [vocab_size] p, then what refusals leave of it; sums to 1

 private:
  std::size_t token_of(int row) const {
    return static_cast<std::size_t>(tree_.token[static_cast<std::size_t>(row)]);
  }

  bool keeps(int row, double chance) {
    const double u = uniforms_.accept(position_, n_draws_++, chance);
    decision_.draws.push_back(
        {.row = row, .uniform = static_cast<float>(u), .keep = static_cast<float>(chance)});
    return u < chance;
  }

  int judge_certain() {
    for (const int row : candidates_.rows) {
      const double p = left[token_of(row)];
      if (p <= 0) continue;  // filtered out, or refused before
      if (keeps(row, std::min(1.0, p))) return row;
      std::vector<double> rest = left;
      rest[token_of(row)] = 0;
      if (!normalise(rest)) return row;  // nothing else is possible
      left = std::move(rest);
    }
    return -1;
  }

  int judge_drawn(bool replacement) {
    std::vector<double> q = candidates_.law;
    for (const int row : candidates_.rows) {
      const std::size_t x = token_of(row);
      ensure(q[x] > 0, "a candidate must have been drawn from its law");
      if (keeps(row, std::min(1.0, left[x] / q[x]))) return row;
      if (!take_residual(left, q)) return row;
      if (replacement) continue;
      q[x] = 0;
      if (!normalise(q)) break;  // it was the last that could be drawn
    }
    return -1;
  }

  int judge_k_seq() {
    const std::vector<double>& q = candidates_.law;
    const int k = static_cast<int>(candidates_.rows.size());
    const double rho = k_seq_factor(left, q, k);
    for (const int row : candidates_.rows) {
      const std::size_t x = token_of(row);
      if (keeps(row, std::min(1.0, left[x] / (rho * q[x])))) return row;
    }
    const double beta = overlap(left, q, rho);
    const double share = beta > 0 ? any_of_k(beta, k) / beta : 0;
    std::vector<double> rest(left.size());
    for (std::size_t v = 0; v < left.size(); v++)
      rest[v] = std::max(0.0, left[v] - share * std::min(q[v], left[v] / rho));
    if (!normalise(rest)) return candidates_.rows.back();
    left = std::move(rest);
    return -1;
  }

  const TokenTree& tree_;
  const Candidates& candidates_;
  std::uint32_t position_;
  UniformSource& uniforms_;
  Decision& decision_;
  std::uint32_t n_draws_ = 0;
};

}  // namespace

double k_seq_factor(std::span<const double> p, std::span<const double> q, int k) {
  const auto is_valid = [&](double rho) {
    const double beta = overlap(p, q, rho);
    return any_of_k(beta, k) <= rho * beta;
  };
  double low = 1, high = k;
  if (k <= 1 || is_valid(low)) return low;
  for (int i = 0; i < 40; i++) {
    const double middle = (low + high) / 2;
    (is_valid(middle) ? high : low) = middle;
  }
  return high;
}

Decision reject_drafted(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        std::span<const Candidates> candidates,
                        const StepOutput& out,
                        const Sampling& sampling,
                        DraftRule rule,
                        UniformSource& uniforms) {
  ensure(candidates.size() == tree.token.size(), "every row has its list of candidates");
  ensure(out.logits.size() == tree.token.size() * static_cast<std::size_t>(out.vocab_size),
         "rejection sampling needs every row's logits");
  std::vector<TokenId> history(tokens.begin(), tokens.end());
  Decision decision;
  decision.row_p.assign(tree.token.size(), -1);
  for (int row = 0; row >= 0;) {
    decision.path.push_back(row);
    const int parent = row;
    const Candidates& judged = candidates[static_cast<std::size_t>(row)];
    const std::vector<double> law = token_law(out.logits_of(row), sampling, history);
    Node node(tree, judged, law, static_cast<std::uint32_t>(history.size()), uniforms, decision);
    row = node.judge(rule);
    const bool kept = row >= 0;
    TokenId token = -1;
    if (kept) {
      token = tree.token[static_cast<std::size_t>(row)];
    } else {
      std::tie(token, row) = node.draw_left();
    }
    if (!judged.rows.empty()) decision.weighed.push_back(node.told(parent, law, token, kept));
    for (const int r : judged.rows) {
      const auto at = static_cast<std::size_t>(r);
      decision.row_p[at] = static_cast<float>(law[static_cast<std::size_t>(tree.token[at])]);
    }
    decision.emitted.push_back(token);
    decision.logp.push_back(static_cast<float>(std::log(law[static_cast<std::size_t>(token)])));
    history.push_back(token);
  }
  return decision;
}

}  // namespace engine

#include "engine/decode/verify/draft_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace engine {
namespace {

static_assert(kMaxRejectionTokens <= kernels::kMaxRejectionTokens);

/// Scales to sum 1. @return false  if there is nothing to scale
bool normalise(std::vector<double>& distribution) {
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  if (!(sum > 0)) return false;
  for (double& p : distribution) p /= sum;
  return true;
}

/// Replaces p by the residual distribution norm(max(0, p - q)). @return false  if nothing is left:
/// p equals q up to rounding
bool take_residual(std::vector<double>& p, std::span<const double> q) {
  std::vector<double> left(p.size());
  for (std::size_t v = 0; v < p.size(); v++) left[v] = std::max(0.0, p[v] - q[v]);
  if (!normalise(left)) return false;
  p = std::move(left);
  return true;
}

/// beta = sum min(q, p / rho).
double overlap(std::span<const double> p, std::span<const double> q, double rho) {
  double beta = 0;
  for (std::size_t v = 0; v < p.size(); v++) beta += std::min(q[v], p[v] / rho);
  return beta;
}

/// Probability that at least one of k independent candidates is accepted.
double any_of_k(double beta, int k) {
  return 1 - std::pow(1 - std::min(beta, 1.0), k);
}

/// The tokens of a RejectionDetail: the named ones first, then the likeliest under p or q.
std::vector<TokenId> tokens_to_report(std::vector<TokenId> named,
                                      std::span<const double> p,
                                      std::span<const double> q) {
  std::vector<TokenId> reported;
  const auto add = [&reported](TokenId id) {
    if (reported.size() < kMaxRejectionTokens && std::ranges::find(reported, id) == reported.end())
      reported.push_back(id);
  };
  for (const TokenId id : named) add(id);
  const auto weight = [&](TokenId id) {
    const auto v = static_cast<std::size_t>(id);
    return std::max(p[v], q.empty() ? 0.0 : q[v]);
  };
  const auto heavier = [&](TokenId a, TokenId b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
  };
  std::vector<TokenId> likeliest;  // sorted, at most kMaxRejectionTokens
  for (TokenId id = 0; id < std::ssize(p); id++) {
    const bool full = likeliest.size() == kMaxRejectionTokens;
    if (weight(id) <= 0 || (full && !heavier(id, likeliest.back()))) continue;
    if (full) likeliest.pop_back();
    likeliest.insert(std::ranges::upper_bound(likeliest, id, heavier), id);
  }
  for (const TokenId id : likeliest) add(id);
  return reported;
}

/// The result of verifying one row's candidates.
struct RowResult {
  int kept = -1;  // index of the accepted candidate; -1: none
  // the accepted candidate, or a token drawn from the residual distribution
  TokenId token = -1;
  double p = 0;                          // probability of `token` under the target
  std::vector<double> candidate_p = {};  // [candidates] their probabilities under the target
  std::vector<Draw> draws = {};
  double last_uniform = -1;                // the number that drew the token; -1: none
  RejectionDetail rejection_details = {};  // without tokens: not reported
};

/// A row whose candidates are verified.
struct RowToVerify {
  const TokenTree& tree;
  const Candidates& candidates;
  int row;
  std::uint32_t position;  // of the candidates
  UniformSource& uniforms;

  TokenId token_of(int candidate_row) const {
    return tree.token[static_cast<std::size_t>(candidate_row)];
  }
  Draw drawn(int candidate, double uniform, double chance) const {
    return {.row = candidates.rows[static_cast<std::size_t>(candidate)],
            .uniform = static_cast<float>(uniform),
            .keep = static_cast<float>(chance)};
  }
};

/// Verifies the candidates of one row with distributions on the host. A candidate is rejected if
/// its uniform number equals its acceptance probability, so a token of probability 0 is never
/// accepted.
class Node {
 public:
  Node(const RowToVerify& verified, std::vector<double> distribution)
      : verified_(verified),
        candidates_(verified.candidates),
        distribution_(std::move(distribution)),
        left_(distribution_) {
    for (const int row : candidates_.rows)
      result_.candidate_p.push_back(distribution_[token_of(row)]);
  }

  RowResult verify(DraftRule rule) {
    result_.kept = accept(rule);
    if (result_.kept >= 0) {
      result_.token = verified_.token_of(candidates_.rows[static_cast<std::size_t>(result_.kept)]);
    } else {
      result_.last_uniform = verified_.uniforms.residual(verified_.position, left_);
      result_.token = draw(left_, result_.last_uniform);
    }
    result_.p = distribution_[static_cast<std::size_t>(result_.token)];
    if (!candidates_.rows.empty()) fill_rejection_details();
    return std::move(result_);
  }

 private:
  /// @return  the accepted candidate's index, or -1: then left_ is the residual distribution
  int accept(DraftRule rule) {
    if (candidates_.rows.empty() || rule == DraftRule::Naive) return -1;
    if (candidates_.distribution.empty()) return accept_deterministic();
    return rule == DraftRule::KSeq ? accept_k_seq() : accept_drawn(rule == DraftRule::With);
  }

  std::size_t token_of(int row) const { return static_cast<std::size_t>(verified_.token_of(row)); }

  /// Calls take(candidate index, its token) until it returns true. @return  that index, or -1
  template <class Take>
  int first_of(const Take& take) const {
    for (std::size_t i = 0; i < candidates_.rows.size(); i++)
      if (take(static_cast<int>(i), token_of(candidates_.rows[i]))) return static_cast<int>(i);
    return -1;
  }

  bool keeps(int candidate, double chance) {
    const auto n_draws = static_cast<std::uint32_t>(result_.draws.size());
    const double u = verified_.uniforms.accept(verified_.position, n_draws, chance);
    result_.draws.push_back(verified_.drawn(candidate, u, chance));
    return u < chance;
  }

  int accept_deterministic() {
    return first_of([this](int i, std::size_t x) {
      const double p = left_[x];
      if (p <= 0) return false;  // filtered out, or rejected before
      if (keeps(i, std::min(1.0, p))) return true;
      std::vector<double> rest = left_;
      rest[x] = 0;
      if (!normalise(rest)) return true;  // no other token is possible
      left_ = std::move(rest);
      return false;
    });
  }

  int accept_drawn(bool replacement) {
    std::vector<double> q = candidates_.distribution;
    bool has_more = true;
    return first_of([&](int i, std::size_t x) {
      if (!has_more) return false;
      ensure(q[x] > 0, "a candidate must have been drawn from its distribution");
      if (keeps(i, std::min(1.0, left_[x] / q[x]))) return true;
      if (!take_residual(left_, q)) return true;
      if (replacement) return false;
      q[x] = 0;
      has_more = normalise(q);  // false: it was the last token that could be drawn
      return false;
    });
  }

  int accept_k_seq() {
    const std::vector<double>& q = candidates_.distribution;
    const int k = static_cast<int>(candidates_.rows.size());
    const double rho = k_seq_factor(left_, q, k);
    const int kept = first_of(
        [&](int i, std::size_t x) { return keeps(i, std::min(1.0, left_[x] / (rho * q[x]))); });
    if (kept >= 0) return kept;
    const double beta = overlap(left_, q, rho);
    const double share = beta > 0 ? any_of_k(beta, k) / beta : 0;
    std::vector<double> rest(left_.size());
    for (std::size_t v = 0; v < left_.size(); v++)
      rest[v] = std::max(0.0, left_[v] - share * std::min(q[v], left_[v] / rho));
    if (!normalise(rest)) return k - 1;
    left_ = std::move(rest);
    return -1;
  }

  void fill_rejection_details() {
    RejectionDetail& rejection_details = result_.rejection_details;
    std::vector<TokenId> named{result_.token};
    for (const int r : candidates_.rows) named.push_back(verified_.token_of(r));
    rejection_details.row = verified_.row;
    rejection_details.token =
        tokens_to_report(std::move(named), distribution_, candidates_.distribution);
    const auto of = [&rejection_details](std::span<const double> from) {
      std::vector<float> values;
      for (const TokenId id : rejection_details.token)
        values.push_back(static_cast<float>(from[static_cast<std::size_t>(id)]));
      return values;
    };
    rejection_details.p = of(distribution_);
    if (!candidates_.distribution.empty()) rejection_details.q = of(candidates_.distribution);
    if (result_.kept < 0) rejection_details.residual = of(left_);
  }

  const RowToVerify& verified_;
  const Candidates& candidates_;
  std::vector<double> distribution_;  // [vocab_size] the target's
  // [vocab_size] first the same, then the residual distribution; sums to 1
  std::vector<double> left_;
  RowResult result_;
};

/// A row's place in drafted_verify_request(): its node, -1 if it has none, and the index of its
/// first candidate.
struct Place {
  int node = -1;
  std::size_t first = 0;
};
std::vector<Place> places_of(std::span<const Candidates> candidates) {
  std::vector<bool> is_reached(candidates.size());
  is_reached[0] = true;
  for (const Candidates& below : candidates)
    for (const int row : below.rows) is_reached[static_cast<std::size_t>(row)] = true;
  std::vector<Place> places(candidates.size());
  Place next{.node = 0};
  for (std::size_t r = 0; r < candidates.size(); r++) {
    if (!is_reached[r]) continue;
    places[r] = next;
    next.node++;
    next.first += candidates[r].rows.size();
  }
  return places;
}

/// The device's result for a row.
/// @param place  the row's place in drafted_verify_request()
RowResult device_result(const RowToVerify& verified, const VerifyResult& all, const Place& place) {
  const auto [node, first] = place;
  const kernels::VerifiedNode& found = all.nodes[static_cast<std::size_t>(node)];
  ensure(found.token >= 0, "a verified row must have finite logits");
  RowResult result{.kept = found.kept, .token = found.token, .p = found.p};
  if (found.kept < 0) result.last_uniform = verified.uniforms.residual(verified.position, {});
  for (std::size_t i = 0; i < verified.candidates.rows.size(); i++) {
    const auto& [p, chance] = all.candidates[first + i];
    result.candidate_p.push_back(p);
    if (chance < 0) continue;
    const auto n_draws = static_cast<std::uint32_t>(result.draws.size());
    const double u = verified.uniforms.accept(verified.position, n_draws, chance);
    result.draws.push_back(verified.drawn(static_cast<int>(i), u, chance));
  }
  if (all.rejection_tokens.empty() || verified.candidates.rows.empty()) return result;
  RejectionDetail& rejection_details = result.rejection_details;
  rejection_details.row = verified.row;
  const std::size_t n_reported = all.rejection_tokens.size() / all.nodes.size();
  for (std::size_t i = 0; i < n_reported; i++) {
    const kernels::RejectionToken& reported =
        all.rejection_tokens[static_cast<std::size_t>(node) * n_reported + i];
    if (reported.id < 0) break;
    rejection_details.token.push_back(reported.id);
    rejection_details.p.push_back(reported.p);
    if (verified.candidates.device_distribution) rejection_details.q.push_back(reported.q);
    if (found.kept < 0) rejection_details.residual.push_back(reported.residual);
  }
  return result;
}

kernels::AcceptanceRule device_rule(DraftRule rule) {
  switch (rule) {
    case DraftRule::Without:
      return kernels::AcceptanceRule::Without;
    case DraftRule::With:
      return kernels::AcceptanceRule::With;
    case DraftRule::KSeq:
      return kernels::AcceptanceRule::KSeq;
    case DraftRule::Naive:
      break;
  }
  return kernels::AcceptanceRule::Naive;
}

/// The row of the candidate with this token; -1: there is none.
int row_with(const RowToVerify& verified, TokenId token) {
  const auto found = std::ranges::find(verified.candidates.rows, token,
                                       [&](int row) { return verified.token_of(row); });
  return found == verified.candidates.rows.end() ? -1 : *found;
}

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

VerifyRequest drafted_verify_request(std::span<const TokenId> tokens,
                                     const TokenTree& tree,
                                     std::span<const Candidates> candidates,
                                     DraftRule rule,
                                     UniformSource& uniforms) {
  ensure(candidates.size() == tree.token.size(), "every row must have a list of candidates");
  const std::vector<Place> places = places_of(candidates);
  VerifyRequest verify_request{
      .nodes = {}, .candidates = {}, .n_rejection_tokens = kMaxRejectionTokens};
  std::vector<std::uint32_t> position(candidates.size());  // of the token after each row
  for (std::size_t r = 0; r < candidates.size(); r++) {
    position[r] = tree.parent[r] < 0 ? static_cast<std::uint32_t>(tokens.size())
                                     : position[static_cast<std::size_t>(tree.parent[r])] + 1;
    if (places[r].node < 0) continue;
    ensure(candidates[r].distribution.empty(), "the device cannot read a distribution on the host");
    verify_request.add({.row = static_cast<int>(r),
                        .rule = device_rule(rule),
                        .uniform = uniforms.residual(position[r], {}),
                        .q = candidates[r].device_distribution});
    std::uint32_t n_draws = 0;
    for (const int row : candidates[r].rows)
      verify_request.add_candidate(tree.token[static_cast<std::size_t>(row)],
                                   uniforms.accept(position[r], n_draws++, 0));
  }
  return verify_request;
}

Decision reject_drafted(std::span<const TokenId> tokens,
                        const TokenTree& tree,
                        std::span<const Candidates> candidates,
                        const StepOutput& out,
                        const Sampling& sampling,
                        DraftRule rule,
                        UniformSource& uniforms,
                        bool no_bonus_at_leaf) {
  ensure(candidates.size() == tree.token.size(), "every row must have a list of candidates");
  const bool on_device = !out.verify_result.nodes.empty();
  ensure(on_device ||
             out.logits.size() == tree.token.size() * static_cast<std::size_t>(out.vocab_size),
         "rejection sampling needs the device's result or every row's logits");
  const std::vector<Place> places = on_device ? places_of(candidates) : std::vector<Place>();
  ensure(
      !on_device || std::ranges::count_if(places, [](const Place& one) { return one.node >= 0; }) ==
                        std::ssize(out.verify_result.nodes),
      "the device's result must belong to drafted_verify_request()");
  std::vector<TokenId> history(tokens.begin(), tokens.end());
  Decision decision;
  decision.row_p.assign(tree.token.size(), -1);
  for (int row = 0; row >= 0;) {
    const auto at = static_cast<std::size_t>(row);
    const RowToVerify verified{tree, candidates[at], row,
                               static_cast<std::uint32_t>(history.size()), uniforms};
    decision.path = chain_of(tree, row);
    if (no_bonus_at_leaf && verified.candidates.rows.empty() && !decision.emitted.empty()) {
      decision.path.pop_back();  // the last accepted token leads the next step
      break;
    }
    RowResult result =
        on_device ? device_result(verified, out.verify_result, places[at])
                  : Node(verified, token_distribution(out.logits_of(row), sampling, history))
                        .verify(rule);
    for (std::size_t i = 0; i < result.candidate_p.size(); i++)
      decision.row_p[static_cast<std::size_t>(verified.candidates.rows[i])] =
          static_cast<float>(result.candidate_p[i]);
    std::ranges::copy(result.draws, std::back_inserter(decision.draws));
    if (result.kept < 0) decision.last_uniform = static_cast<float>(result.last_uniform);
    if (!result.rejection_details.token.empty())
      decision.rejection_details.push_back(std::move(result.rejection_details));
    decision.emitted.push_back(result.token);
    decision.logp.push_back(static_cast<float>(std::log(result.p)));
    history.push_back(result.token);
    row = row_with(verified, result.token);
  }
  return decision;
}

}  // namespace engine

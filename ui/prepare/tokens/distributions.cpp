#include "ui/prepare/tokens/distributions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/tokens/verdicts.h"

namespace ui {
namespace {

// Rounding error of a sum of recorded f32 probabilities.
constexpr double kRounding = engine::kMaxRejectionTokens * 0x1p-24;
// omission_words() explains an interval that is wider than this.
constexpr double kWideInterval = 0.1;
constexpr double kLargestVocabulary = 1 << 22;

// Returns bounds of the sum of p^power over `n` probabilities p with sum `share` and maximum
// `most`. For a power > 1 the sum is largest if few tokens have the whole share and smallest if all
// are equal; for a power < 1 the opposite holds.
Interval power_sum(double share, const Unrecorded& others, double power) {
  if (share <= 0 || others.n < 1) return {};
  const double alike = others.n * std::pow(share / others.n, power);
  const double most = std::min(share, std::max(others.most, share / others.n));
  const double n_full = std::floor(share / most);
  const double left = std::max(0.0, share - n_full * most);
  const double apart = n_full * std::pow(most, power) + (left > 0 ? std::pow(left, power) : 0);
  return {std::min(alike, apart), std::max(alike, apart)};
}

Interval min_of(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::min(a.high, b.high)};
}

// Returns the maximum number of unrecorded tokens with a positive probability; 0 if the recorded ones have the whole mass.
double n_unrecorded(const DistributionsSource& source,
                    const std::vector<float>& distribution,
                    int top_k) {
  const double recorded = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  if (distribution.size() < engine::kMaxRejectionTokens && recorded > 1 - 2 * kRounding) return 0;
  const double vocabulary = source.vocab_size > 0 ? source.vocab_size : kLargestVocabulary;
  double n = vocabulary - static_cast<double>(distribution.size());
  if (top_k > 0) {
    const auto n_positive = std::ranges::count_if(distribution, [](float p) { return p > 0; });
    n = std::min(n, top_k - static_cast<double>(n_positive));
  }
  return std::max(0.0, n);
}

// Returns the maximum probability of an unrecorded token. A record lists the emitted token and the candidates, then the most likely tokens;
// the last of these is at least as likely as every token that was not recorded.
double most_unrecorded(const engine::StepRecord& step, const engine::RejectionDetail& w) {
  const engine::TokenTree& tree = step.drafted.tree;
  std::set<engine::TokenId> named;
  if (static_cast<std::size_t>(w.row) < step.verified.picked.size())
    named.insert(step.verified.picked[static_cast<std::size_t>(w.row)]);
  for (int row = 0; row < tree.n_rows(); ++row)
    if (tree.parent[static_cast<std::size_t>(row)] == w.row)
      named.insert(tree.token[static_cast<std::size_t>(row)]);
  if (w.token.empty() || named.contains(w.token.back())) return 1;
  return std::max(w.p.back(), w.q.empty() ? 0.0f : w.q.back());
}

float option_number(const engine::RunStarted& started, const char* name, float otherwise) {
  const auto found = started.options.find(name);
  return found == started.options.end() ? otherwise : std::strtof(found->second.c_str(), nullptr);
}

// Returns the names of the filters that remove tokens by probability; empty: none.
std::string cut_words(float top_p, float min_p) {
  if (top_p < 1) return min_p > 0 ? "top p and min p" : "top p";
  return min_p > 0 ? "min p" : "";
}

}  // namespace

std::string words_of(const Interval& value) {
  if (value.wide() < 1e-3) return fmt::format("{:.3f}", value.middle());
  return fmt::format("{:.2f} to {:.2f}", value.low, value.high);
}

DistributionAt distribution_at(std::span<const float> distribution,
                               const Unrecorded& others,
                               double from,
                               double to) {
  const double power = from / to;
  const double recorded = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  const double rest = others.n < 1 ? 0 : std::max(0.0, 1 - recorded);
  const double least = std::max(0.0, rest - kRounding), most = rest > 0 ? rest + kRounding : 0;
  // Scaled by the largest probability to avoid underflow.
  const double top =
      distribution.empty() ? 1 : std::max<double>(1e-30, std::ranges::max(distribution));
  const Unrecorded scaled{others.n, others.most / top};
  const Interval rest_power{power_sum(least / top, scaled, power).low,
                            power_sum(most / top, scaled, power).high};
  std::vector<double> weight;
  for (const float p : distribution) weight.push_back(p > 0 ? std::pow(p / top, power) : 0);
  const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  DistributionAt at;
  for (const double w : weight)
    at.of.push_back({share(w, sum + rest_power.high), share(w, sum + rest_power.low)});
  at.rest = {share(rest_power.low, sum + rest_power.low),
             share(rest_power.high, sum + rest_power.high)};
  return at;
}

DistributionsSource distributions_source(const engine::Timeline& timeline,
                                         const engine::RunRecord& run) {
  const engine::RunStarted& s = run.started;
  DistributionsSource source{.temperature = s.temperature, .top_k = s.top_k};
  const auto own = [&s](const char* name, float of_target) {
    const float value = option_number(s, name, -1);
    return value < 0 ? of_target : value;
  };
  source.draft_follows = option_number(s, "draft_temperature", -1) < 0;
  source.draft_temperature = own("draft_temperature", s.temperature);
  source.draft_top_k = static_cast<int>(own("draft_top_k", static_cast<float>(s.top_k)));
  source.cut = cut_words(s.top_p, s.min_p);
  source.draft_cut = cut_words(own("draft_top_p", s.top_p), own("draft_min_p", s.min_p));
  if (const engine::ModelLoaded* model = timeline.model(s.model))
    source.vocab_size = model->vocab_size;
  return source;
}

DistributionsAt distributions_at(const DistributionsSource& source,
                                 const engine::StepRecord& step,
                                 const engine::RejectionDetail& w,
                                 float temperature) {
  const double most = most_unrecorded(step, w);
  DistributionsAt at;
  at.p = distribution_at(w.p, {n_unrecorded(source, w.p, source.top_k), most}, source.temperature,
                         temperature);
  if (w.q.empty()) return at;
  const double of_draft = source.draft_temperature > 0 ? source.draft_temperature : 1;
  at.q = distribution_at(w.q, {n_unrecorded(source, w.q, source.draft_top_k), most}, of_draft,
                         source.draft_follows ? temperature : of_draft);
  for (std::size_t i = 0; i < std::min(at.p.of.size(), at.q.of.size()); ++i) {
    const Interval both = min_of(at.p.of[i], at.q.of[i]);
    at.kept.low += both.low;
    at.kept.high += both.high;
  }
  at.kept.high = std::min(1.0, at.kept.high + std::min(at.p.rest.high, at.q.rest.high));
  at.kept.low = std::min(at.kept.low, at.kept.high);
  at.apart = {1 - at.kept.high, 1 - at.kept.low};
  return at;
}

std::string why_no_other_temperature(const engine::RunStarted& started,
                                     const engine::StepRecord& step) {
  if (!uses_rejection(started))
    return "The distributions were not recorded, because this run verifies by comparing tokens. "
           "With rejection sampling at a temperature above 0, a run records up to 8 tokens of each "
           "distribution.";
  return step.verified.rejection_details.empty() ? "No distribution of this step was recorded."
                                                 : "";
}

std::string omission_words(const DistributionsSource& source,
                           const DistributionsAt& distributions,
                           float temperature) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
  const bool both = source.cut == source.draft_cut;
  const auto kept_by = [&](const std::string& cut, const char* whose) {
    if (!cut.empty())
      add(
          fmt::format("{} is recomputed over the tokens that {} kept during recording; the "
                      "others are not recorded.",
                      whose, cut));
  };
  kept_by(source.cut, both && !distributions.q.of.empty() ? "Each distribution" : "p");
  if (!both && !distributions.q.of.empty()) kept_by(source.draft_cut, "q");
  if (!distributions.q.of.empty() && !source.draft_follows)
    add(fmt::format("q does not change: the draft has its own temperature, {:g}.",
                    source.draft_temperature));
  if (distributions.kept.wide() > kWideInterval || distributions.p.rest.wide() > kWideInterval)
    add(fmt::format(
        "Too few tokens of these distributions are recorded to compute them exactly at {:.2f}; "
        "bounds are shown.",
        temperature));
  return text;
}

}  // namespace ui

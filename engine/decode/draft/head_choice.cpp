#include "engine/decode/draft/head_choice.h"

#include <algorithm>
#include <cmath>

namespace engine {
namespace {

/// Upper ends of the buckets of probabilities.
constexpr double kEnds[] = {0.01, 0.03, 0.07, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1};
constexpr double kForget = 0.98;  // weight of earlier steps with a draft
// Steps with a draft before any was made, and their weight.
constexpr double kPriorTokens = 1.8, kPriorShare = 1.3, kPriorDrafting = 0.1, kPriorSteps = 3;

}  // namespace

HeadKnowledge::HeadKnowledge() {
  for (auto& rates : rates_) {
    double begin = 0;
    for (std::size_t b = 0; b < kBuckets; b++) {
      rates[b] = Rate(0.45 * (begin + kEnds[b]));  // a little less than the head says
      begin = kEnds[b];
    }
  }
}

std::size_t HeadKnowledge::bucket(double p) {
  const auto* const end = std::lower_bound(std::begin(kEnds), std::end(kEnds) - 1, p);
  return static_cast<std::size_t>(end - std::begin(kEnds));
}

const Rate& HeadKnowledge::rate_of(const HeadCandidate& candidate) const {
  const std::size_t head = std::min(static_cast<std::size_t>(candidate.depth), kHeads) - 1;
  return rates_[head][bucket(candidate.p)];
}

double HeadKnowledge::drafting_ms(const StepControl& control) const {
  return control.ms(1) * (drafting_ + kPriorSteps * kPriorDrafting) / (n_ + kPriorSteps);
}

std::vector<SizePlan> HeadKnowledge::plans(const StepControl& control) const {
  const double n = n_ + kPriorSteps;
  const double tokens = (tokens_ + kPriorSteps * kPriorTokens) / n;
  const double share = (share_ + kPriorSteps * kPriorShare) / n;
  return {{1, 1, control.ms(1)},
          {tokens, tokens * (1 + 0.5 / std::sqrt(n)), share * control.ms(1)}};
}

void HeadKnowledge::rate(std::span<HeadCandidate> candidates) const {
  for (HeadCandidate& one : candidates) {
    const double above =
        one.parent == 0 ? 1 : candidates[static_cast<std::size_t>(one.parent) - 1].right;
    one.right = above * rate_of(one).mean();
  }
}

int HeadKnowledge::choose_rows(std::span<const double> right, const StepControl& control) const {
  const double tokens_per_ms = chooser_.rate() / control.ms(1);
  double tokens = 0, most = 0;
  int best = 0;
  for (int n = 1; n <= static_cast<int>(right.size()); n++) {
    tokens += right[static_cast<std::size_t>(n) - 1];
    const double gain = tokens - tokens_per_ms * (control.ms(1 + n) - control.ms(1));
    if (gain > most) most = gain, best = n;
  }
  return best;
}

void HeadKnowledge::learn(std::span<const HeadCandidate> candidates,
                          std::span<const TokenId> emitted) {
  int parent = 0;
  for (const TokenId token : emitted) {
    int next = -1;
    for (std::size_t i = 0; i < candidates.size(); i++) {
      if (candidates[i].parent != parent) continue;
      const bool is_right = candidates[i].token == token;
      const std::size_t head = std::min(static_cast<std::size_t>(candidates[i].depth), kHeads) - 1;
      rates_[head][bucket(candidates[i].p)].add(is_right);
      if (is_right) next = static_cast<int>(i) + 1;
    }
    if (next < 0) return;
    parent = next;
  }
}

void HeadKnowledge::came(int n_tokens, double ms, double plain_ms, double drafting) {
  chooser_.came(n_tokens, ms / plain_ms);
  for (auto& rates : rates_)
    for (Rate& rate : rates) rate.fade();
  if (drafting < 0) return;
  n_ = kForget * n_ + 1;
  tokens_ = kForget * tokens_ + n_tokens;
  share_ = kForget * share_ + ms / plain_ms;
  drafting_ = kForget * drafting_ + drafting;
}

}  // namespace engine

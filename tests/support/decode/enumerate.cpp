#include "tests/support/decode/enumerate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace engine::test {
namespace {

/// Replays a list of outcomes. At a choice after its end, it takes the first outcome and appends it.
class Script : public UniformSource {
 public:
  double accept(std::uint32_t /*position*/, std::uint32_t /*index*/, double threshold) override {
    // The probabilities of both outcomes: below the threshold, and at or above it.
    std::vector<double> weights;
    std::vector<double> numbers;
    if (threshold > 0) weights.push_back(threshold), numbers.push_back(threshold / 2);
    if (threshold < 1) weights.push_back(1 - threshold), numbers.push_back((1 + threshold) / 2);
    return numbers[choose(weights)];
  }

  double proposal(std::uint32_t position,
                  std::uint32_t /*index*/,
                  std::span<const double> distribution) override {
    return residual(position, distribution);
  }

  double residual(std::uint32_t /*position*/, std::span<const double> distribution) override {
    const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
    std::vector<double> weights;
    std::vector<double> numbers;
    double below = 0;
    for (const double p : distribution) {
      if (p > 0) weights.push_back(p / sum), numbers.push_back((below + p / 2) / sum);
      below += p;
    }
    return numbers[choose(weights)];
  }

  /// Moves to the next outcome. @return false after the last one
  bool advance() {
    while (!choices_.empty() && choices_.back() + 1 == n_choices_.back()) {
      choices_.pop_back();
      n_choices_.pop_back();
    }
    if (choices_.empty()) return false;
    choices_.back()++;
    at_ = 0;
    probability = 1;
    return true;
  }

  double probability = 1;

 private:
  std::size_t choose(const std::vector<double>& weights) {
    if (at_ == choices_.size()) {
      choices_.push_back(0);
      n_choices_.push_back(weights.size());
    }
    ensure(n_choices_[at_] == weights.size(), "the experiment is not deterministic");
    const std::size_t choice = choices_[at_++];
    probability *= weights[choice];
    return choice;
  }

  std::vector<std::size_t> choices_, n_choices_;
  std::size_t at_ = 0;
};

}  // namespace

Distribution enumerate(const std::function<std::vector<TokenId>(UniformSource&)>& experiment) {
  Distribution distribution;
  Script script;
  do {
    const std::vector<TokenId> result = experiment(script);
    distribution[result] += script.probability;
  } while (script.advance());
  return distribution;
}

Distribution enumerate_steps(
    const std::function<std::vector<TokenId>(const std::vector<TokenId>&, UniformSource&)>& step,
    const std::vector<TokenId>& begin,
    const std::function<bool(const std::vector<TokenId>&)>& is_done) {
  Distribution done, open{{begin, 1.0}};
  while (!open.empty()) {
    Distribution next;
    for (const auto& [state, probability] : open) {
      const Distribution behind =
          enumerate([&](UniformSource& uniforms) { return step(state, uniforms); });
      for (const auto& [state_behind, p] : behind)
        (is_done(state_behind) ? done : next)[state_behind] += probability * p;
    }
    open = std::move(next);
  }
  return done;
}

namespace {

std::vector<double> differences(const Distribution& a, const Distribution& b) {
  std::vector<double> all;
  for (const auto& [result, p] : a) {
    const auto other = b.find(result);
    all.push_back(std::abs(p - (other == b.end() ? 0.0 : other->second)));
  }
  for (const auto& [result, p] : b) {
    if (!a.contains(result)) all.push_back(p);
  }
  return all;
}

}  // namespace

double distance(const Distribution& a, const Distribution& b) {
  double largest = 0;
  for (const double difference : differences(a, b)) largest = std::max(largest, difference);
  return largest;
}

double total_variation(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for (const double difference : differences(a, b)) sum += difference;
  return sum / 2;
}

Distribution plain_distribution(
    const std::function<std::vector<double>(std::span<const TokenId>)>& next,
    const std::vector<TokenId>& prompt,
    int n) {
  Distribution distribution{{{}, 1.0}};
  for (int i = 0; i < n; i++) {
    Distribution longer;
    for (const auto& [tokens, p] : distribution) {
      std::vector<TokenId> text = prompt;
      text.insert(text.end(), tokens.begin(), tokens.end());
      const std::vector<double> conditional = next(text);
      for (std::size_t v = 0; v < conditional.size(); v++) {
        if (conditional[v] <= 0) continue;
        std::vector<TokenId> grown = tokens;
        grown.push_back(static_cast<TokenId>(v));
        longer[grown] += p * conditional[v];
      }
    }
    distribution = std::move(longer);
  }
  return distribution;
}

}  // namespace engine::test

#include "tests/support/decode/enumerate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace engine::test {
namespace {

/// Replays a list of outcomes. At a choice after its end, it takes the first outcome and appends it.
class Script : public UniformSource {
 public:
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
    begin_again();
    return true;
  }

  double probability = 1;

 protected:
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

 private:
  virtual void begin_again() {}

  std::vector<std::size_t> choices_, n_choices_;
  std::size_t at_ = 0;
};

/// Every call has a number of its own.
class FreshNumbers final : public Script {
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
};

/// Calls with the same use, position and index have the same number. Knows the range of each number and
/// divides it where a call compares it.
class NumbersOfASeed final : public Script {
 public:
  double accept(std::uint32_t position, std::uint32_t index, double threshold) override {
    return number({0, position, index}, {threshold});
  }
  double residual(std::uint32_t position, std::span<const double> distribution) override {
    return number({1, position, 0}, ends_of(distribution));
  }
  double proposal(std::uint32_t position,
                  std::uint32_t index,
                  std::span<const double> distribution) override {
    return number({2, position, index}, ends_of(distribution));
  }

 private:
  struct Range {
    double low = 0, high = 1;
  };
  using Key = std::array<std::uint32_t, 3>;

  void begin_again() override { known_.clear(); }

  /// The shares of the tokens, cumulated.
  static std::vector<double> ends_of(std::span<const double> distribution) {
    std::vector<double> ends(distribution.size());
    std::partial_sum(distribution.begin(), distribution.end(), ends.begin());
    for (double& end : ends) end /= ends.back();
    return ends;
  }

  /// @param cuts  ascending; the results differ on their two sides
  double number(const Key& key, const std::vector<double>& cuts) {
    constexpr double kRounding = 1e-14;
    Range& range = known_[key];
    std::vector<Range> parts;
    Range rest = range;
    for (const double cut : cuts) {
      if (cut - rest.low < kRounding || rest.high - cut < kRounding) continue;
      parts.push_back({rest.low, cut});
      rest.low = cut;
    }
    parts.push_back(rest);
    std::vector<double> weights;
    for (const Range& part : parts)
      weights.push_back((part.high - part.low) / (range.high - range.low));
    range = parts[choose(weights)];
    return (range.low + range.high) / 2;
  }

  std::map<Key, Range> known_;
};

template <class Numbers>
Distribution outcomes(const std::function<std::vector<TokenId>(UniformSource&)>& experiment) {
  Distribution distribution;
  Numbers numbers;
  do {
    const std::vector<TokenId> result = experiment(numbers);
    distribution[result] += numbers.probability;
  } while (numbers.advance());
  return distribution;
}

}  // namespace

Distribution enumerate(const std::function<std::vector<TokenId>(UniformSource&)>& experiment) {
  return outcomes<FreshNumbers>(experiment);
}

Distribution enumerate_seeds(
    const std::function<std::vector<TokenId>(UniformSource&)>& experiment) {
  return outcomes<NumbersOfASeed>(experiment);
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

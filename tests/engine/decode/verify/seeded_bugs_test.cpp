// Enumerating the exact distribution detects common mistakes. `Decode` is a plain speculative
// decoder, written for this test, that is correct or has one mistake. The check that the real
// decoders pass (draft_rules_test.cpp) must accept the correct one and fail all others.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/philox.h"
#include "tests/support/decode/enumerate.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

using Probabilities = std::vector<double>;
using Text = std::vector<TokenId>;

enum class Bug {
  None,
  ComparesWithTarget,   // not a mistake: sample the target, accept the draft if equal; accepts less
  MissDrawsAgain,       // sample the target, compare with the draft, on a miss sample again from p
  ResidualIsP,          // p instead of (p - q)+
  ResidualUniform,      // a uniform distribution instead of (p - q)+
  ArgmaxDraft,          // the draft takes its argmax, the ratio uses a softmax q
  RatioAtOne,           // q of the ratio is at temperature 1, the draft sampled at T
  QOffByOne,            // q of the ratio is that of the row before
  KeepsAtHalf,          // accepts whenever p >= q / 2
  BonusFromWrongRow,    // the bonus token is sampled from the last row but one
  RejectedStaysCached,  // the next tokens are computed as if it were still in the cache
  TopPNotInResidual,    // top-p applies only in the ratio
  TopPNotInBonus,       // top-p does not apply to the bonus token
  DraftInBf16,          // sampled from bf16 numbers, verified with f32 ones
  DropsUnlikely,        // adaptive gamma that depends on the sampled token, and drops it
  KeepsAtZero,          // u <= ratio with u = 0 and p = 0
};

constexpr int kVocab = 5, kGamma = 3;
constexpr std::size_t kTokens = kGamma + 1;  // a whole draft chain and the token after it
const Text kPrompt{0, 1, 2};
/// Spread of the toy models' uniform logits: standard deviations of 0.29, 1.0 and 2.5.
constexpr float kSpreads[] = {1.0f, 3.5f, 8.7f};

struct Pair {
  ToyModel target, draft;
  double temperature = 0.8;
  double top_p = 1;
};

double at(const Probabilities& distribution, TokenId token) {
  return distribution[static_cast<std::size_t>(token)];
}

void normalise(Probabilities& distribution) {
  const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
  for (double& p : distribution) p /= sum;
}

Probabilities softmax(const ToyModel& model, const Text& text, double temperature) {
  Probabilities distribution;
  for (const float logit : model.logits_after(text))
    distribution.push_back(std::exp(static_cast<double>(logit) / temperature));
  normalise(distribution);
  return distribution;
}

Probabilities nucleus(Probabilities distribution, double top_p) {
  std::vector<std::size_t> order(distribution.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return distribution[a] > distribution[b]; });
  double taken = 0;
  for (const std::size_t v : order) {
    const double p = distribution[v];
    if (taken >= top_p) distribution[v] = 0;
    taken += p;
  }
  normalise(distribution);
  return distribution;
}

Probabilities in_bf16(Probabilities distribution) {
  for (double& p : distribution) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(p));
    p = static_cast<double>(std::bit_cast<float>((bits + 0x8000u) & 0xFFFF0000u));
  }
  return distribution;  // draw() normalises
}

class Decode {
  static constexpr TokenId kEnd = -1;

 public:
  Decode(const Pair& pair, Bug bug, UniformSource& uniforms)
      : pair_(pair), bug_(bug), uniforms_(uniforms) {}

  /// One step after a state. A state holds the output, an end token of -1, and the tokens that the
  /// models see.
  Text operator()(const Text& state) {
    const auto end = std::ranges::find(state, kEnd);
    text_.assign(state.begin(), end);
    seen_.assign(end + 1, state.end());
    step(kPrompt.size() + kTokens - text_.size());
    return state_of(text_, seen_);
  }
  static Text state_of(Text text, const Text& seen) {
    text.push_back(kEnd);
    text.insert(text.end(), seen.begin(), seen.end());
    return text;
  }
  /// The output of a state, without the prompt.
  static Text written(const Text& state) {
    return {state.begin() + std::ssize(kPrompt), std::ranges::find(state, kEnd)};
  }

 private:
  bool is(Bug bug) const { return bug_ == bug; }
  TokenId drawn(const Probabilities& distribution) {
    return draw(distribution, uniforms_.residual(0, distribution));
  }
  void emit(TokenId token) {
    text_.push_back(token);
    seen_.push_back(token);
  }

  void step(std::size_t room) {
    // The drafted tokens, the distributions they were sampled from, and those they are verified
    // with.
    Text drafted;
    std::vector<Probabilities> q, p;
    const std::size_t n_draft = std::min(std::size_t{kGamma}, room - 1);
    for (std::size_t i = 0; i < n_draft; i++) {
      const Text context = after(drafted);
      q.push_back(softmax(pair_.draft, context, pair_.temperature));
      Probabilities from = q.back();
      if (is(Bug::ArgmaxDraft)) {
        const auto best = std::ranges::max_element(from) - from.begin();
        from.assign(from.size(), 0);
        from[static_cast<std::size_t>(best)] = 1;
      }
      if (is(Bug::DraftInBf16)) from = in_bf16(from);
      const TokenId x = drawn(from);
      if (is(Bug::DropsUnlikely) && at(q.back(), x) < 0.3) {
        q.pop_back();
        break;
      }
      drafted.push_back(x);
      if (is(Bug::RatioAtOne)) q.back() = softmax(pair_.draft, context, 1);
    }
    for (std::ptrdiff_t i = 0; i <= std::ssize(drafted); i++) {
      const Text kept(drafted.begin(), drafted.begin() + i);
      p.push_back(softmax(pair_.target, after(kept), pair_.temperature));
    }
    verify(drafted, q, p);
  }

  Text after(const Text& drafted) const {
    Text text = seen_;
    text.insert(text.end(), drafted.begin(), drafted.end());
    return text;
  }

  void verify(const Text& drafted, std::vector<Probabilities>& q, std::vector<Probabilities>& p) {
    for (std::size_t i = 0; i < drafted.size(); i++) {
      const TokenId x = drafted[i];
      const Probabilities filtered = nucleus(p[i], pair_.top_p);
      if (is(Bug::ComparesWithTarget)) {
        const TokenId token = drawn(filtered);
        emit(token);
        if (token == x) continue;
        return;
      }
      if (is(Bug::MissDrawsAgain)) {
        if (drawn(filtered) == x) {
          emit(x);
          continue;
        }
        return emit(drawn(filtered));
      }
      const Probabilities& proposed_by = is(Bug::QOffByOne) && i > 0 ? q[i - 1] : q[i];
      double chance = std::min(1.0, at(filtered, x) / at(proposed_by, x));
      if (is(Bug::KeepsAtHalf) && at(filtered, x) >= at(proposed_by, x) / 2) chance = 1;
      // This mistake keeps a token of probability 0 if u is 0, which is too rare to enumerate. The
      // test gives u = 0 the probability 0.05.
      if (is(Bug::KeepsAtZero) && chance == 0) chance = 0.05;
      if (uniforms_.accept(0, 0, chance) < chance) {
        emit(x);
        continue;
      }
      const TokenId token = residual(p[i], filtered, q[i]);
      if (is(Bug::RejectedStaysCached)) seen_.push_back(x);
      return emit(token);
    }
    const bool wrong_row = is(Bug::BonusFromWrongRow) && p.size() > 1;
    const Probabilities& last = wrong_row ? p[p.size() - 2] : p.back();
    emit(drawn(is(Bug::TopPNotInBonus) && !drafted.empty() ? last : nucleus(last, pair_.top_p)));
  }

  TokenId residual(const Probabilities& p, const Probabilities& filtered, const Probabilities& q) {
    if (is(Bug::ResidualIsP)) return drawn(filtered);
    if (is(Bug::ResidualUniform)) return drawn(Probabilities(p.size(), 1.0));
    const Probabilities& from = is(Bug::TopPNotInResidual) ? p : filtered;
    Probabilities left(p.size());
    for (std::size_t v = 0; v < p.size(); v++) left[v] = std::max(0.0, from[v] - q[v]);
    return drawn(std::ranges::max(left) > 0 ? left : filtered);
  }

  const Pair& pair_;
  Bug bug_;
  UniformSource& uniforms_;
  Text text_, seen_;  // the output, and the tokens that the models see
};

/// Distance of a decoder's first n tokens from plain sampling: the largest difference for the
/// correct decoder, else the total variation.
double error_of(Bug bug, float spread, double top_p = 1, std::size_t n = kTokens) {
  // The distributions depend on the whole sequence.
  const ToyShape shape{.vocab = kVocab, .context = 8, .spread = spread, .seed = 6};
  const Pair pair{
      .target = ToyModel(shape), .draft = ToyModel(draft_of(shape, spread)), .top_p = top_p};
  const Distribution states = enumerate_steps(
      [&](const Text& state, UniformSource& u) { return Decode(pair, bug, u)(state); },
      Decode::state_of(kPrompt, kPrompt),
      [](const Text& state) { return Decode::written(state).size() == kTokens; });
  Distribution found;
  for (const auto& [state, p] : states) {
    Text text = Decode::written(state);
    text.resize(n);
    found[text] += p;
  }
  const Distribution expected = plain_distribution(
      [&](std::span<const TokenId> text) {
        const Text context(text.begin(), text.end());
        return nucleus(softmax(pair.target, context, pair.temperature), top_p);
      },
      kPrompt, static_cast<int>(n));
  return bug == Bug::None ? distance(found, expected) : total_variation(found, expected);
}

TEST(SeededBugs, the_correct_rule_passes) {
  for (const float spread : kSpreads) {
    EXPECT_LE(error_of(Bug::None, spread), 1e-12);
    EXPECT_LE(error_of(Bug::None, spread, 0.7), 1e-12);
  }
}

// A control: a variant that looks like a mistake but is correct must pass.
TEST(SeededBugs, sampling_the_target_and_comparing_passes) {
  for (const float spread : kSpreads) {
    EXPECT_LE(error_of(Bug::ComparesWithTarget, spread), 1e-12);
    EXPECT_LE(error_of(Bug::ComparesWithTarget, spread, 0.7), 1e-12);
  }
}

class SeededBug : public testing::TestWithParam<Bug> {};

TEST_P(SeededBug, shifts_the_distribution_by_more_than_0_01) {
  for (const float spread : kSpreads) EXPECT_GT(error_of(GetParam(), spread), 0.01) << spread;
}

INSTANTIATE_TEST_SUITE_P(Each,
                         SeededBug,
                         testing::Values(Bug::MissDrawsAgain,
                                         Bug::ResidualIsP,
                                         Bug::ResidualUniform,
                                         Bug::ArgmaxDraft,
                                         Bug::RatioAtOne,
                                         Bug::QOffByOne,
                                         Bug::KeepsAtHalf,
                                         Bug::BonusFromWrongRow,
                                         Bug::RejectedStaysCached,
                                         Bug::DropsUnlikely));

TEST(SeededBugs, filter_mistakes_are_detected_with_filters) {
  for (const Bug bug : {Bug::TopPNotInResidual, Bug::TopPNotInBonus, Bug::KeepsAtZero}) {
    for (const float spread : kSpreads) {
      EXPECT_GT(error_of(bug, spread, 0.7), 0.01) << static_cast<int>(bug) << " " << spread;
      EXPECT_LE(error_of(bug, spread), 1e-12) << "the mistake cannot occur";
    }
  }
}

TEST(SeededBugs, bf16_rounding_of_a_distribution_is_detected) {
  for (const float spread : kSpreads) {
    const double error = error_of(Bug::DraftInBf16, spread);
    EXPECT_GT(error, 1e-5) << spread;
    EXPECT_LT(error, 1e-2) << spread;  // no sampling test would detect it
  }
}

TEST(SeededBugs, some_do_not_shift_the_first_token) {
  // This is why sequences longer than a draft chain are enumerated.
  for (const Bug bug : {Bug::BonusFromWrongRow, Bug::RejectedStaysCached}) {
    for (const float spread : kSpreads) EXPECT_LE(error_of(bug, spread, 1, 1), 1e-12);
  }
}

TEST(SeededBugs, noise_shared_by_draft_and_residual_is_detected) {
  // The draft samples by the Gumbel-max trick, the ratio test rejects, and the residual is sampled
  // with the same noise. p = (.2, .35, .3, .15), q = (.6, .2, .1, .1).
  const Probabilities p{0.2, 0.35, 0.3, 0.15}, q{0.6, 0.2, 0.1, 0.1};
  constexpr int kRuns = 60000;
  const auto frequencies = [&](std::uint32_t residual_stream) {
    Probabilities found(4);
    for (std::uint32_t i = 0; i < kRuns; i++) {
      const auto noisy = [&](const Probabilities& distribution, std::uint32_t stream) {
        std::size_t best = 0;
        double most = -1e300;
        for (std::size_t v = 0; v < distribution.size(); v++) {
          if (distribution[v] <= 0) continue;
          const double score =
              std::log(distribution[v]) + kernels::gumbel_from_bits(kernels::random_bits(
                                              3, stream, i, static_cast<std::uint32_t>(v)));
          if (score > most) most = score, best = v;
        }
        return best;
      };
      std::size_t token = noisy(q, 1);
      const double u = kernels::uniform_from_bits(kernels::random_bits(3, 2, i, 0));
      if (!(u < p[token] / q[token])) {
        Probabilities left(4);
        for (std::size_t v = 0; v < 4; v++) left[v] = std::max(0.0, p[v] - q[v]);
        token = noisy(left, residual_stream);
      }
      found[token] += 1.0 / kRuns;
    }
    double variation = 0;
    for (std::size_t v = 0; v < 4; v++) variation += std::abs(found[v] - p[v]) / 2;
    return variation;
  };
  EXPECT_LT(frequencies(3), 0.008);  // with its own stream
  EXPECT_GT(frequencies(1), 0.015);
}

}  // namespace
}  // namespace engine::test

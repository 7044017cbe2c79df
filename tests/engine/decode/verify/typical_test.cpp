// Typical acceptance by its definition: accepted tokens, the chosen path, and the bonus token.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "engine/decode/verify/typical.h"
#include "tests/support/decode/enumerate.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

using Distribution = std::vector<double>;

/// A step's output whose rows have these distributions.
StepOutput answering(const std::vector<Distribution>& distributions) {
  StepOutput out;
  out.vocab_size = static_cast<int>(distributions[0].size());
  for (const Distribution& distribution : distributions) {
    for (const double p : distribution)
      out.logits.push_back(p > 0 ? static_cast<float>(std::log(p)) : -200.0f);
    out.picked.emplace_back();
    out.picked.back().id =
        static_cast<TokenId>(std::ranges::max_element(distribution) - distribution.begin());
  }
  return out;
}

TokenTree tree_of(const std::vector<std::pair<TokenId, int>>& rows) {
  TokenTree tree;
  for (const auto& [token, parent] : rows)
    tree.add(token, parent, RowTag{RowTag::Kind::Draft, 1, 0});
  tree.tag[0] = {};
  return tree;
}

const Sampling kWarm{.temperature = 1};
const std::vector<TokenId> kText{0};

Decision verified(const TokenTree& tree,
                  const StepOutput& out,
                  const TypicalSettings& settings = {},
                  const Sampling& sampling = kWarm) {
  PhiloxUniforms uniforms(1);
  return accept_typical(kText, tree, out, sampling, settings, uniforms);
}

TEST(Typical, the_threshold_is_the_papers) {
  // Uniform over V: H = ln V, so delta exp(-H) = 0.3 / V is below every probability.
  const Distribution uniform(20, 0.05);
  EXPECT_NEAR(typical_threshold(uniform, {}), 0.3 / 20, 1e-12);
  // One-hot: H = 0, and min(0.09, 0.3) is epsilon.
  EXPECT_NEAR(typical_threshold(Distribution{0, 1, 0}, {}), 0.09, 1e-12);
  EXPECT_NEAR(typical_threshold(Distribution{.5, .5}, {.epsilon = 1, .delta = .4}), .2, 1e-12);
}

TEST(Typical, uniform_accepts_all_tokens_and_one_hot_the_mode) {
  for (TokenId token = 0; token < 4; token++) {
    const TokenTree tree = tree_of({{0, -1}, {token, 0}});
    const Distribution uniform(4, 0.25), sure{0, 0, 1, 0};
    EXPECT_EQ(verified(tree, answering({uniform, uniform})).path.size(), 2u);
    EXPECT_EQ(verified(tree, answering({sure, uniform})).path.size(), token == 2 ? 2u : 1u);
  }
}

TEST(Typical, the_mode_is_accepted_if_it_exceeds_the_threshold) {
  Dice dice(4);
  int n_kept = 0;
  for (int i = 0; i < 300; i++) {
    Distribution distribution;
    double sum = 0;
    for (int v = 0; v < 7; v++)
      distribution.push_back(std::exp(dice(0, 40) / 8.0)), sum += distribution.back();
    for (double& p : distribution) p /= sum;
    const auto mode =
        static_cast<TokenId>(std::ranges::max_element(distribution) - distribution.begin());
    const TokenTree tree = tree_of({{0, -1}, {mode, 0}});
    const bool kept = verified(tree, answering({distribution, distribution})).path.size() == 2;
    EXPECT_EQ(kept, std::ranges::max(distribution) > typical_threshold(distribution, {}));
    n_kept += kept;
  }
  EXPECT_GT(n_kept, 0);
}

// With s = ln p + H, a token is kept if s > ln(delta) or p > epsilon. As the temperature rises, s
// falls only for tokens with s > 0, which are kept.
TEST(Typical, a_higher_temperature_accepts_a_superset) {
  Dice dice(11);
  int n_kept = 0, n_not = 0, n_came = 0;
  for (int i = 0; i < 200; i++) {
    Distribution distribution;
    double sum = 0;
    for (int v = 0; v < 6; v++)
      distribution.push_back(std::exp(dice(0, 60) / 8.0)), sum += distribution.back();
    for (double& p : distribution) p /= sum;
    for (TokenId token = 0; token < 6; token++) {
      const TokenTree tree = tree_of({{0, -1}, {token, 0}});
      bool before = false;
      for (const float temperature : {0.2f, 0.5f, 1.0f, 1.5f, 3.0f}) {
        Distribution heated;
        double mass = 0;
        for (const double p : distribution)
          heated.push_back(std::pow(p, 1 / temperature)), mass += heated.back();
        for (double& p : heated) p /= mass;
        if (std::abs(heated[static_cast<std::size_t>(token)] - typical_threshold(heated, {})) <
            1e-4)
          break;  // too close for single precision
        const auto kept = [&](const Distribution& of, float at) {
          return verified(tree, answering({of, of}), {}, {.temperature = at}).path.size() == 2;
        };
        const bool now = kept(distribution, temperature);
        EXPECT_EQ(now, kept(heated, 1)) << temperature;
        EXPECT_GE(now, before) << temperature;
        n_came += now && !before && temperature > 0.2f;
        (now ? n_kept : n_not)++;
        before = now;
      }
    }
  }
  EXPECT_GT(n_kept, 100);
  EXPECT_GT(n_not, 100);
  EXPECT_GT(n_came, 50);
}

TEST(Typical, the_longest_then_likeliest_path_is_accepted) {
  const Distribution root{.1, .5, .4, 0}, sure{0, 0, 0, 1}, spread{.25, .25, .25, .25};
  // Two paths of two tokens and one of one: tokens 1 then 3, tokens 2 then 3, token 1 then 0.
  const TokenTree tree = tree_of({{0, -1}, {1, 0}, {2, 0}, {3, 1}, {3, 2}, {0, 2}});
  const auto path = [&](const Distribution& after_1, const Distribution& after_2) {
    return verified(tree, answering({root, after_1, after_2, spread, spread, spread})).path;
  };
  EXPECT_EQ(path(sure, Distribution{1, 0, 0, 0}), (std::vector{0, 1, 3}));  // .5 * 1 beats .4 * 1
  EXPECT_EQ(path(Distribution{0, 1, 0, 0}, sure),
            (std::vector{0, 2, 4}));                      // the other path ends after one token
  EXPECT_EQ(path(spread, sure), (std::vector{0, 2, 4}));  // .4 * 1 beats .5 * .25
}

// T13.
TEST(Typical, a_token_outside_the_tree_matches_nothing) {
  // A short path beside a longer one, with token 0 the most probable everywhere: programs that pad
  // paths with token 0 accept a token that nobody proposed.
  const Distribution zero{1, 0, 0, 0}, one{0, 1, 0, 0};
  const TokenTree tree = tree_of({{0, -1}, {1, 0}, {2, 0}, {3, 2}, {3, 3}});
  const Decision decision = verified(tree, answering({one, zero, zero, zero, zero}));
  EXPECT_EQ(decision.path, (std::vector{0, 1}));
  EXPECT_EQ(decision.emitted, (std::vector<TokenId>{1, 0}));
}

TEST(Typical, temperature_0_is_the_greedy_choice) {
  const Distribution a{.1, .46, .44, 0}, b{.3, .3, .2, .2};
  const TokenTree tree = tree_of({{0, -1}, {1, 0}, {2, 0}, {0, 1}, {1, 1}});
  const Decision decision = verified(tree, answering({a, b, b, b, b}), {}, {.temperature = 0});
  EXPECT_EQ(decision.path, (std::vector{0, 1, 3}));
  EXPECT_EQ(decision.emitted, (std::vector<TokenId>{1, 0, 0}));
}

TEST(Typical, the_bonus_token_has_the_options_distribution) {
  const Distribution distribution{.6, .3, .06, .04};  // H is about .93, so the threshold is .09
  const TokenTree tree = tree_of({{0, -1}, {2, 0}});
  Sampling rejection = kWarm;
  rejection.mode = Sampling::Mode::Rejection;
  const auto drawn = [&](TypicalSettings::Root root) {
    Distribution found(4);
    const auto all = enumerate([&](UniformSource& uniforms) {
      return accept_typical(kText, tree, answering({distribution, distribution}), rejection,
                            {.root = root}, uniforms)
          .emitted;
    });
    for (const auto& [tokens, p] : all) found[static_cast<std::size_t>(tokens.at(0))] += p;
    return found;
  };
  using Root = TypicalSettings::Root;
  const auto expect = [](const Distribution& found, const Distribution& expected) {
    for (std::size_t v = 0; v < found.size(); v++) EXPECT_NEAR(found[v], expected[v], 1e-6);
  };
  expect(drawn(Root::Argmax), {1, 0, 0, 0});
  expect(drawn(Root::Typical), {2.0 / 3, 1.0 / 3, 0, 0});
  expect(drawn(Root::Sample), distribution);
}

// The device returns candidates grouped by parent, while the tree's rows may be in another order.
TEST(Typical, device_results_are_read_row_by_row) {
  const TokenTree tree = tree_of({{0, -1}, {1, 0}, {2, 1}, {3, 0}, {4, 1}, {5, 3}});
  PhiloxUniforms uniforms(1);
  const VerifyRequest asked = typical_verify_request(kText, tree, kWarm, {}, uniforms);
  StepOutput out;
  out.picked.resize(tree.token.size());
  for (const kernels::VerifyNode& node : asked.nodes)
    out.verify_result.nodes.push_back({.kept = -1, .token = 10 + node.row, .p = 0.5});
  for (const kernels::Candidate& one : asked.candidates)  // 3 is accepted, and 5 after it
    out.verify_result.candidates.push_back(
        {one.token / 10.0, one.token == 3 || one.token == 5 ? 1. : 0.});
  const Decision decision = verified(tree, out);
  EXPECT_EQ(decision.emitted, (std::vector<TokenId>{3, 5, 15}));
  EXPECT_EQ(decision.path, (std::vector<int>{0, 3, 5}));
  EXPECT_EQ(decision.row_p, (std::vector<float>{-1, 0.1f, -1, 0.3f, -1, 0.5f}));
  EXPECT_FLOAT_EQ(decision.logp.back(), std::log(0.5f));
}

}  // namespace
}  // namespace engine::test

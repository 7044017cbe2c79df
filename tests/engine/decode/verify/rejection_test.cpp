// Rejection sampling keeps the distribution: the tests enumerate every outcome of the real code
// with its exact probability (T3). Plausible but wrong rules must fail the same check.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/verify/verify.h"
#include "tests/support/decode/chosen_sizes.h"
#include "tests/support/decode/enumerate.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

constexpr double kExact = 1e-12;

/// The distribution of the next token after penalty, temperature, top-k, top-p and min-p, written
/// plainly.
std::vector<double> plain_next(const ToyModel& model,
                               const Sampling& s,
                               std::span<const TokenId> text) {
  std::vector<double> weight;
  const std::vector<float> logits = model.logits_after(text);
  for (std::size_t v = 0; v < logits.size(); v++) {
    float score = logits[v];
    const bool seen = std::ranges::find(text, static_cast<TokenId>(v)) != text.end();
    if (seen) score = score < 0 ? score * s.repetition_penalty : score / s.repetition_penalty;
    weight.push_back(std::exp(static_cast<double>(score) / static_cast<double>(s.temperature)));
  }
  std::vector<double> kept(weight.size());
  double total = 0;
  double taken = 0;
  std::vector<bool> used(weight.size());
  const auto n =
      s.top_k > 0 ? std::min(weight.size(), static_cast<std::size_t>(s.top_k)) : weight.size();
  std::vector<std::size_t> ranked;
  for (std::size_t i = 0; i < n; i++) {
    std::size_t best = weight.size();
    for (std::size_t v = 0; v < weight.size(); v++) {
      if (!used[v] && (best == weight.size() || weight[v] > weight[best])) best = v;
    }
    used[best] = true;
    ranked.push_back(best);
    total += weight[best];
  }
  for (const std::size_t v : ranked) {
    const bool in_top_p = taken < static_cast<double>(s.top_p) * total;
    const bool over_min = weight[v] >= static_cast<double>(s.min_p) * weight[ranked[0]];
    taken += weight[v];
    if (in_top_p && over_min) kept[v] = weight[v];
  }
  double sum = 0;
  for (const double w : kept) sum += w;
  for (double& w : kept) w /= sum;
  return kept;
}

Distribution expected_distribution(const ToyModel& model,
                                   const Job& job,
                                   const std::vector<TokenId>& prompt) {
  return plain_distribution(
      [&](std::span<const TokenId> text) { return plain_next(model, job.sampling, text); }, prompt,
      job.limits.max_tokens);
}

struct Case {
  std::string name;
  Job job;
  int vocab = 4;
};

std::vector<Case> cases() {
  const auto lookahead = [](OptionValues options) {
    Job job;
    job.decoder = "lookahead";
    options.insert({"window", "2"});
    options.insert({"prompt_pool", "true"});
    job.options = std::move(options);
    job.sampling = {.temperature = 1, .mode = Sampling::Mode::Rejection};
    job.limits.max_tokens = 3;
    return job;
  };
  std::vector<Case> all{
      {"bonus", lookahead({{"ngram_size", "3"}, {"n_guesses", "4"}})},
      {"no bonus", lookahead({{"ngram_size", "3"}, {"n_guesses", "4"}, {"bonus", "false"}})},
      {"not merged", lookahead({{"ngram_size", "3"}, {"n_guesses", "4"}, {"merge", "false"}})},
      {"paper", lookahead({{"preset", "paper"}, {"ngram_size", "3"}, {"n_guesses", "3"}})},
      {"2-grams", lookahead({{"ngram_size", "2"}, {"n_guesses", "3"}, {"bonus", "false"}})},
      {"4-grams", lookahead({{"ngram_size", "4"}, {"n_guesses", "2"}})},
  };
  Case filtered{"filters", lookahead({{"ngram_size", "3"}, {"n_guesses", "4"}})};
  filtered.job.sampling.temperature = 0.7f;
  filtered.job.sampling.top_k = 3;
  filtered.job.sampling.top_p = 0.8f;
  filtered.job.sampling.min_p = 0.05f;
  all.push_back(filtered);
  Case penalised{"penalty", lookahead({{"ngram_size", "3"}, {"n_guesses", "4"}})};
  penalised.job.sampling.repetition_penalty = 1.2f;
  all.push_back(penalised);
  Case prompt_lookup{"prompt lookup", lookahead({})};
  prompt_lookup.job.decoder = "prompt-lookup";
  prompt_lookup.job.options = {{"n_tokens", "3"}};
  all.push_back(prompt_lookup);
  Case recycling{"recycling", lookahead({})};
  recycling.job.decoder = "recycling";
  recycling.job.options = {{"rows", "6"}, {"k", "3"}};
  all.push_back(recycling);
  recycling.name = "recycling, filters";
  recycling.job.options = {{"rows", "5"}, {"k", "2"}, {"pairs", "false"}, {"learn", "accepted"}};
  recycling.job.sampling = filtered.job.sampling;
  all.push_back(recycling);
  Case suffix{"suffix", lookahead({})};
  suffix.job.decoder = "suffix";
  suffix.job.options = {{"n_tokens", "4"}, {"factor", "4"}, {"min_p", "0"}};
  all.push_back(suffix);
  Case file{"suffix with a file", suffix.job};
  const std::vector<TokenId> text{1, 0, 3, 0, 1, 3, 1, 0, 3, 2};
  file.job.texts = std::make_shared<EarlierTexts>(std::make_shared<PoolFile>("a", text));
  all.push_back(file);
  Case jacobi{"jacobi", lookahead({})};
  jacobi.job.decoder = "jacobi";
  for (const char* refill : {"block", "slide"}) {
    for (const char* fill : {"prompt", "pad", "repeat"}) {
      jacobi.name = std::string("jacobi ") + refill + " " + fill;
      jacobi.job.options = {{"block", "3"}, {"refill", refill}, {"fill", fill}};
      all.push_back(jacobi);
    }
  }
  jacobi.name = "jacobi, filters and penalty";
  jacobi.job.sampling = filtered.job.sampling;
  jacobi.job.sampling.repetition_penalty = 1.2f;
  all.push_back(jacobi);
  Case plain{"ar", lookahead({})};
  plain.job.decoder = "ar";
  plain.job.options = {};
  all.push_back(plain);
  return all;
}

TEST(Rejection, every_decoder_keeps_the_distribution_exactly) {
  for (Case& c : cases()) {
    std::int64_t n_accepted = 0;
    for (std::uint64_t seed = 0; seed < 4; seed++) {
      ToyModel model({.vocab = c.vocab, .context = 2, .spread = 3, .seed = seed});
      const std::vector<TokenId> prompt{0, 1, 2, 0, 1, 3, 0, 2, 2, 0, 1, 2, 1, 0};
      const Distribution distribution = enumerate([&](UniformSource& uniforms) {
        c.job.uniforms = &uniforms;
        const Outcome outcome = run(model, prompt, c.job);
        n_accepted += outcome.n_accepted;
        return outcome.tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c.job, prompt)), kExact)
          << c.name;
    }
    if (c.job.decoder != "ar") {
      EXPECT_GT(n_accepted, 0) << c.name << ": no token was accepted";
    }
  }
}

/// Every source of guesses with all of its sizes on "auto".
std::vector<Case> sized_cases() {
  std::vector<Case> all;
  const auto add = [&](const char* decoder, const OptionValues& options) {
    Case c{decoder, {.decoder = decoder, .options = options}, 3};
    for (const auto& [option, value] : options) c.name += " " + option + "=" + value;
    c.job.sampling = {.temperature = 1, .mode = Sampling::Mode::Rejection};
    c.job.limits.max_tokens = 5;
    all.push_back(c);
  };
  add("lookahead", {});
  add("lookahead", {{"ngram_size", "4"}, {"prompt_pool", "false"}});
  add("lookahead", {{"window", "2"}});
  for (const char* variant : {"paper", "hf", "last"}) add("prompt-lookup", {{"variant", variant}});
  add("suffix", {});
  all.back().job.texts = std::make_shared<EarlierTexts>(
      std::make_shared<PoolFile>("a", std::vector<TokenId>{1, 0, 2, 0, 1, 2, 1, 0, 2, 2}));
  add("suffix", {{"shape", "chain"}});
  add("recycling", {{"k", "3"}});
  add("jacobi", {{"refill", "block"}});
  add("jacobi", {{"refill", "slide"}});
  all.back().job.limits.max_tokens = 4;
  return all;
}

// A size that depended on a number drawn in its own step would change the distribution.
TEST(Rejection, chosen_sizes_keep_the_distribution_exactly) {
  for (Case& c : sized_cases()) {
    std::int64_t n_accepted = 0;
    bool vary = false;
    ToyModel model({.vocab = c.vocab, .context = 2, .spread = 3, .seed = 1});
    const std::vector<TokenId> prompt{0, 1, 2, 0, 1, 2, 0, 2, 2, 0, 1, 2, 1, 0};
    for (const double row_share : {0.02, 0.2, 0.4}) {
      ChosenSizes sizes;
      const Distribution distribution = enumerate([&](UniformSource& uniforms) {
        StepControl control = control_of(row_share);
        c.job.control = &control;
        c.job.uniforms = &uniforms;
        const Outcome outcome = run(model, prompt, c.job);
        n_accepted += outcome.n_accepted;
        sizes.add(outcome);
        return outcome.tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c.job, prompt)), kExact)
          << c.name << ", row " << row_share;
      vary |= sizes.vary();
    }
    EXPECT_GT(n_accepted, 0) << c.name << ": no token was accepted";
    EXPECT_TRUE(vary) << c.name << ": the results of steps changed no size";
  }
}

// Two runs with one seed use the same random numbers. So the first run, whose statistics about guesses
// depend on these numbers, must not change the sizes of the second.
TEST(Rejection, chosen_sizes_do_not_depend_on_an_earlier_run_of_the_seed) {
  for (Case& c : sized_cases()) {
    c.job.limits.max_tokens = 3;
    ToyModel model({.vocab = c.vocab, .context = 2, .spread = 3, .seed = 1});
    const std::vector<TokenId> prompt{0, 1, 2, 0, 1, 2, 0, 2, 2, 0, 1, 2, 1, 0};
    for (const double row_share : {0.02, 0.2, 0.4}) {
      const Distribution distribution = enumerate_seeds([&](UniformSource& uniforms) {
        StepControl control = control_of(row_share);
        c.job.control = &control;
        c.job.uniforms = &uniforms;
        run(model, prompt, c.job);
        return run(model, prompt, c.job).tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c.job, prompt)), kExact)
          << c.name << ", row " << row_share;
    }
  }
}

TEST(Rejection, an_end_token_keeps_the_distribution) {
  // Cutting at an end token must not change the tokens before it.
  Case c = cases()[0];
  c.job.limits.eos_ids = {2};
  ToyModel model({.vocab = 4, .context = 2, .spread = 3, .seed = 8});
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1, 3, 0};
  const Distribution distribution = enumerate([&](UniformSource& uniforms) {
    c.job.uniforms = &uniforms;
    return run(model, prompt, c.job).tokens;
  });
  Distribution cut_distribution;
  for (const auto& [tokens, p] : expected_distribution(model, c.job, prompt)) {
    const auto end = std::ranges::find(tokens, 2);
    cut_distribution[std::vector(tokens.begin(), end == tokens.end() ? end : end + 1)] += p;
  }
  EXPECT_LE(distance(distribution, cut_distribution), kExact);
}

/// Verifies one node's candidates by a rule that may be wrong.
struct WrongRule {
  bool residual_keeps_refused = false;  // samples from p although candidates were rejected
  bool no_renormalisation = false;      // does not renormalise p after a rejection
  bool below_or_equal_at_zero = false;  // accepts a token of probability 0
};

TokenId decide(const std::vector<double>& p,
               const std::vector<TokenId>& candidates,
               const WrongRule& wrong,
               UniformSource& uniforms) {
  std::vector<double> left = p;
  for (const TokenId x : candidates) {
    double& mass = left[static_cast<std::size_t>(x)];
    double sum = 0;
    for (const double q : left) sum += q;
    const double threshold = wrong.no_renormalisation ? mass : mass / sum;
    if (wrong.below_or_equal_at_zero && mass == 0) return x;
    if (uniforms.accept(0, 0, threshold) < threshold) return x;
    mass = 0;
  }
  const std::vector<double>& distribution = wrong.residual_keeps_refused ? p : left;
  return draw(distribution, uniforms.residual(0, distribution));
}

double error_of(const WrongRule& wrong) {
  const std::vector<double> p{0.5, 0.0, 0.3, 0.2};
  const std::vector<TokenId> candidates{2, 1, 0};
  const Distribution distribution = enumerate([&](UniformSource& uniforms) {
    return std::vector<TokenId>{decide(p, candidates, wrong, uniforms)};
  });
  return distance(distribution, {{{0}, 0.5}, {{2}, 0.3}, {{3}, 0.2}});
}

TEST(Rejection, plausible_wrong_rules_are_detected) {
  EXPECT_LE(error_of({}), kExact);
  EXPECT_GT(error_of({.residual_keeps_refused = true}), 0.01);
  EXPECT_GT(error_of({.no_renormalisation = true}), 0.01);
  EXPECT_GT(error_of({.below_or_equal_at_zero = true}), 0.01);
}

// Two guesses of two tokens with a common first token: a tree of depth two.
using Guess = std::vector<TokenId>;
const std::vector<TokenId> kBehind{0};
const std::vector<Guess> kTwoGuesses{{1, 0}, {1, 2}};

std::vector<TokenId> followed_by(std::vector<TokenId> text, std::span<const TokenId> more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

/// Verifies each guess from its start with its own uniforms, accepts the longest run, and samples
/// one token after it, except the rejected one. Correct for one guess; for several it is a mistake,
/// because a node on two paths is verified twice.
std::vector<TokenId> longest_of(const std::vector<Guess>& guesses,
                                const ToyModel& model,
                                const Sampling& sampling,
                                UniformSource& uniforms) {
  Guess best;
  TokenId refused = -1;  // the rejected token after `best`; -1 if there is none
  for (const Guess& guess : guesses) {
    std::size_t n = 0;
    while (n < guess.size()) {
      const Guess kept(guess.begin(), guess.begin() + static_cast<std::ptrdiff_t>(n));
      const auto p = plain_next(model, sampling, followed_by(kBehind, kept));
      const double threshold = p[static_cast<std::size_t>(guess[n])];
      if (uniforms.accept(0, 0, threshold) >= threshold) break;
      n++;
    }
    const bool is_first = &guess == &guesses.front();
    if (!is_first && n <= best.size()) continue;
    best.assign(guess.begin(), guess.begin() + static_cast<std::ptrdiff_t>(n));
    refused = n < guess.size() ? guess[n] : -1;
  }
  auto left = plain_next(model, sampling, followed_by(kBehind, best));
  if (refused >= 0) left[static_cast<std::size_t>(refused)] = 0;
  best.push_back(draw(left, uniforms.residual(0, left)));
  return best;
}

/// The shipped rule over a tree of the guesses.
/// @param merged  true: a common beginning is one node, not one per guess
std::vector<TokenId> shipped_over(const std::vector<Guess>& guesses,
                                  bool merged,
                                  const ToyModel& model,
                                  const Sampling& sampling,
                                  UniformSource& uniforms) {
  TokenTree tree;
  std::vector<std::vector<TokenId>> text_of{kBehind};  // sequence up to each row
  tree.add(kBehind.back(), -1, RowTag{});
  for (const Guess& guess : guesses) {
    int parent = 0;
    for (const TokenId x : guess) {
      const auto text = followed_by(text_of[static_cast<std::size_t>(parent)], std::span(&x, 1));
      const auto same = std::ranges::find(text_of, text);
      if (merged && same != text_of.end()) {
        parent = static_cast<int>(same - text_of.begin());
        continue;
      }
      parent = tree.add(x, parent, RowTag{RowTag::Kind::Guess, 0, 0});
      text_of.push_back(text);
    }
  }
  StepOutput out;
  out.vocab_size = model.vocab_size();
  for (const auto& text : text_of) {
    const std::vector<float> logits = model.logits_after(text);
    out.logits.insert(out.logits.end(), logits.begin(), logits.end());
  }
  return reject(kBehind, tree, out, sampling, uniforms).emitted;
}

TEST(Rejection, verifying_paths_instead_of_nodes_is_detected) {
  ToyModel model({.vocab = 3, .context = 2, .spread = 2, .seed = 4});
  const Sampling sampling{.temperature = 1};
  constexpr std::size_t kTokens = 3;  // a whole guess and one token after it
  const auto next = [&](std::span<const TokenId> text) {
    return plain_next(model, sampling, text);
  };
  const Distribution expected = plain_distribution(next, kBehind, static_cast<int>(kTokens));
  // Plain sampling continues after a rule's tokens, so every outcome has the same length.
  const auto distribution_of = [&](const auto& rule) {
    return enumerate([&](UniformSource& uniforms) {
      std::vector<TokenId> emitted = rule(uniforms);
      while (emitted.size() < kTokens) {
        const auto p = next(followed_by(kBehind, emitted));
        emitted.push_back(draw(p, uniforms.residual(0, p)));
      }
      return emitted;
    });
  };
  for (const bool merged : {true, false}) {
    const Distribution distribution = distribution_of([&](UniformSource& uniforms) {
      return shipped_over(kTwoGuesses, merged, model, sampling, uniforms);
    });
    EXPECT_LE(distance(distribution, expected), kExact) << (merged ? "merged" : "not merged");
  }
  const Distribution one = distribution_of([&](UniformSource& uniforms) {
    return longest_of({kTwoGuesses[0]}, model, sampling, uniforms);
  });
  EXPECT_LE(distance(one, expected), kExact) << "one guess: each node is on one path only";
  const Distribution two = distribution_of(
      [&](UniformSource& uniforms) { return longest_of(kTwoGuesses, model, sampling, uniforms); });
  EXPECT_GT(total_variation(two, expected), 0.01);
}

TEST(Rejection, resampling_a_block_to_a_fixed_point_is_not_exact) {
  // Jacobi refuses rejection sampling for this reason: two tokens with the joint distribution {.45,
  // .05, .25, .25}, resampled with fresh uniforms up to a fixed point, have {.484, .039, .313,
  // .164}.
  const double first[2] = {0.5, 0.5};
  const double second[2][2] = {{0.9, 0.1}, {0.5, 0.5}};
  // State (a, b): the next is a' ~ first, b' ~ second[a]; the iteration stops at a fixed point.
  double stay[2][2], mass[2][2] = {}, now[2][2] = {{.25, .25}, {.25, .25}};
  for (int a = 0; a < 2; a++) {
    for (int b = 0; b < 2; b++) stay[a][b] = first[a] * second[a][b];
  }
  for (int t = 0; t < 4000; t++) {
    double next[2][2] = {};
    for (int a = 0; a < 2; a++) {
      for (int b = 0; b < 2; b++) {
        mass[a][b] += now[a][b] * stay[a][b];
        for (int a2 = 0; a2 < 2; a2++) {
          for (int b2 = 0; b2 < 2; b2++) {
            if (a2 == a && b2 == b) continue;
            next[a2][b2] += now[a][b] * first[a2] * second[a][b2];
          }
        }
      }
    }
    std::copy(&next[0][0], &next[0][0] + 4, &now[0][0]);
  }
  EXPECT_GT(std::abs(mass[0][0] - 0.45), 0.01);
  EXPECT_NEAR(mass[0][0] + mass[0][1] + mass[1][0] + mass[1][1], 1, 1e-9);
}

TEST(Rejection, a_uniform_at_the_threshold_rejects) {
  class Fixed : public UniformSource {
   public:
    double accept(std::uint32_t, std::uint32_t, double threshold) override { return threshold; }
    double residual(std::uint32_t, std::span<const double>) override { return 0.5; }
    double proposal(std::uint32_t, std::uint32_t, std::span<const double>) override { return 0.5; }
  } fixed;
  TokenTree tree;
  tree.add(0, -1, RowTag{});
  tree.add(1, 0, RowTag{RowTag::Kind::Guess, 0, 0});
  StepOutput out;
  out.vocab_size = 3;
  out.logits = {0, 1, 0, 0, 1, 0};
  const Decision decision = reject(std::vector<TokenId>{0}, tree, out, {.temperature = 1}, fixed);
  ASSERT_EQ(decision.emitted.size(), 1u);
  EXPECT_NE(decision.emitted[0], 1);
  EXPECT_EQ(decision.path, (std::vector<int>{0}));
  ASSERT_EQ(decision.draws.size(), 1u) << "the draw is reported";
  EXPECT_EQ(decision.draws[0].row, 1);
  EXPECT_EQ(decision.draws[0].uniform, decision.draws[0].keep);
  EXPECT_FLOAT_EQ(decision.last_uniform, 0.5f);
}

// Two guesses share their first token but have separate rows: accepting the first continues in
// both.
TEST(Rejection, equal_unmerged_guesses_are_verified_as_one) {
  class RefusesTheFirstOfTheSecond : public UniformSource {
   public:
    double accept(std::uint32_t position, std::uint32_t index, double threshold) override {
      return position == 2 && index == 0 ? threshold : 0;
    }
    double residual(std::uint32_t, std::span<const double>) override { return 0.5; }
    double proposal(std::uint32_t, std::uint32_t, std::span<const double>) override { return 0.5; }
  } uniforms;
  TokenTree tree;
  const RowTag guess{RowTag::Kind::Guess, 0, 0};
  tree.add(0, -1, RowTag{});
  tree.add(1, tree.add(2, 0, guess), guess);
  tree.add(3, tree.add(2, 0, guess), guess);
  StepOutput out;
  out.vocab_size = 4;
  out.logits.resize(tree.token.size() * 4);
  const Decision decision =
      reject(std::vector<TokenId>{0}, tree, out, {.temperature = 1}, uniforms);
  EXPECT_EQ(decision.path, (std::vector<int>{0, 3, 4}));
  ASSERT_EQ(decision.emitted.size(), 3u);
  EXPECT_EQ(decision.emitted[0], 2);
  EXPECT_EQ(decision.emitted[1], 3);
}

TEST(Rejection, a_verification_reports_the_uniforms_of_its_rows) {
  ToyModel model({.vocab = 4, .context = 2, .spread = 3, .seed = 5});
  Job job = cases()[0].job;
  job.limits.max_tokens = 60;
  int n_kept = 0, n_refused = 0;
  const Outcome outcome = run(model, {0, 1, 2, 0, 1, 3, 0, 1}, job);
  for (const Event& event : outcome.events) {
    const auto* v = std::get_if<Verified>(&event);
    // The last step may have been cut after verification.
    if (!v || v->uniform.empty() || v->step + 1 == outcome.n_steps) continue;
    ASSERT_EQ(v->uniform.size(), v->fate.size());
    ASSERT_EQ(v->keep.size(), v->fate.size());
    for (std::size_t row = 0; row < v->fate.size(); row++) {
      if (v->uniform[row] < 0) continue;
      const bool kept = v->uniform[row] < v->keep[row];
      EXPECT_EQ(kept, v->fate[row] == RowFate::Accepted) << "step " << v->step << " row " << row;
      (kept ? n_kept : n_refused)++;
    }
  }
  EXPECT_GT(n_kept, 0);
  EXPECT_GT(n_refused, 0);
}

TEST(Rejection, draws_are_functions_of_seed_position_and_use) {
  PhiloxUniforms one(7), again(7), other(8);
  EXPECT_EQ(one.accept(3, 1, 0.5), again.accept(3, 1, 0.2));
  EXPECT_NE(one.accept(3, 1, 0.5), one.accept(3, 2, 0.5));
  EXPECT_NE(one.accept(3, 0, 0.5), one.accept(4, 0, 0.5));
  EXPECT_NE(one.accept(3, 0, 0.5), other.accept(3, 0, 0.5));
  EXPECT_NE(one.accept(3, 0, 0.5), one.residual(3, {}));
}

TEST(Rejection, sampled_frequencies_follow_the_distribution) {
  // The real random source end to end: 4000 seeds, chi-square of the first token with 3 degrees of
  // freedom; 16.27 is exceeded once in a thousand.
  ToyModel model({.vocab = 4, .context = 2, .spread = 3, .seed = 5});
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1, 3, 0, 1};
  Job job = cases()[0].job;
  job.limits.max_tokens = 2;
  std::vector<int> count(4);
  constexpr int kRuns = 4000;
  for (int i = 0; i < kRuns; i++) {
    job.sampling.seed = static_cast<std::uint64_t>(i);
    count[static_cast<std::size_t>(run(model, prompt, job).tokens[0])]++;
  }
  const std::vector<double> p = plain_next(model, job.sampling, prompt);
  double chi_square = 0;
  for (std::size_t v = 0; v < 4; v++) {
    const double expected = p[v] * kRuns;
    chi_square += (count[v] - expected) * (count[v] - expected) / expected;
  }
  EXPECT_LT(chi_square, 16.27);
}

}  // namespace
}  // namespace engine::test

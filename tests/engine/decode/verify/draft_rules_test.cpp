// Rejection sampling of drafts keeps the target's distribution: the tests enumerate every outcome
// of the real code, drafting included, with its exact probability (T3).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "engine/decode/verify/draft_rules.h"
#include "tests/support/decode/chosen_sizes.h"
#include "tests/support/decode/enumerate.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

constexpr double kExact = 1e-12;

// One node with distributions that a reader can check by hand.

struct Distributions {
  std::vector<double> p, q;
};
const Distributions kPublished{{0.5, 0.3, 0.2}, {0.2, 0.2, 0.6}};

/// Samples one node's candidates from q and verifies them. Sets `accepted` to 1 if a candidate was
/// accepted, else to 0.
TokenId decide(const Distributions& distributions,
               DraftRule rule,
               int k,
               UniformSource& uniforms,
               double& accepted) {
  TokenTree tree;
  tree.add(0, -1, RowTag{});
  std::vector<Candidates> candidates(1);
  std::vector<double> left = distributions.q;
  for (int i = 0; i < k; i++) {
    const TokenId x = draw(left, uniforms.proposal(1, static_cast<std::uint32_t>(i), left));
    const int row = tree.add(x, 0, RowTag{RowTag::Kind::Draft, 1, static_cast<std::int16_t>(i)});
    candidates[0].rows.push_back(row);
    candidates.emplace_back();
    if (rule == DraftRule::Without) left[static_cast<std::size_t>(x)] = 0;
  }
  candidates[0].distribution = distributions.q;
  StepOutput out;
  out.vocab_size = static_cast<int>(distributions.p.size());
  for (int row = 0; row < tree.n_rows(); row++) {
    for (const double p : distributions.p) out.logits.push_back(static_cast<float>(std::log(p)));
  }
  const std::vector<TokenId> tokens{0};
  const Decision decision =
      reject_drafted(tokens, tree, candidates, out, {.temperature = 1}, rule, uniforms);
  accepted = decision.path.size() > 1 ? 1 : 0;
  return decision.emitted[0];
}

/// Probability that a candidate is accepted.
double acceptance(DraftRule rule, int k) {
  double flag = 0;
  const Distribution distribution = enumerate([&](UniformSource& uniforms) {
    const TokenId token = decide(kPublished, rule, k, uniforms, flag);
    return std::vector<TokenId>{token, static_cast<TokenId>(flag)};
  });
  double sum = 0;
  for (const auto& [result, probability] : distribution) sum += result[1] * probability;
  return sum;
}

TEST(DraftRules, acceptance_rates_equal_the_papers) {
  // Logits are f32, so these distributions are exact to 1e-7.
  EXPECT_NEAR(acceptance(DraftRule::Without, 1), 0.60, 1e-6);
  EXPECT_NEAR(acceptance(DraftRule::With, 2), 0.76, 1e-6);
  EXPECT_NEAR(acceptance(DraftRule::Without, 2), 0.90, 1e-6);
  EXPECT_NEAR(k_seq_factor(kPublished.p, kPublished.q, 2), 1.463, 5e-4);
  // The residual may draw a rejected candidate, which then counts as accepted. The rate exceeds
  // SpecTr's 0.785, and the distribution is still exact.
  EXPECT_GE(acceptance(DraftRule::KSeq, 2), 0.785 - 5e-4);
}

double chi_square(const std::vector<int>& count, const std::vector<double>& distribution) {
  const double n = std::accumulate(count.begin(), count.end(), 0.0);
  double sum = 0;
  for (std::size_t v = 0; v < distribution.size(); v++)
    sum +=
        (count[v] - n * distribution[v]) * (count[v] - n * distribution[v]) / (n * distribution[v]);
  return sum;
}

// T4.
TEST(DraftRules, a_million_draws_of_32_tokens_follow_the_distribution) {
  // The real random source; most draws use the default rule. With 31 degrees of freedom, chi-square
  // exceeds 61.1 once in a thousand.
  constexpr int kVocab = 32;
  constexpr double kOnceInAThousand = 61.1;
  Distributions distributions{std::vector<double>(kVocab), std::vector<double>(kVocab)};
  double sum_p = 0, sum_q = 0;
  for (std::size_t v = 0; v < kVocab; v++) {
    sum_p += distributions.p[v] = std::exp(1.5 * std::sin(3.0 * static_cast<double>(v)));
    sum_q += distributions.q[v] = std::exp(1.5 * std::sin(5.0 * static_cast<double>(v) + 1));
  }
  for (double& p : distributions.p) p /= sum_p;
  for (double& q : distributions.q) q /= sum_q;
  const std::pair<DraftRule, int> tried[] = {{DraftRule::Without, 1'000'000},
                                             {DraftRule::With, 200'000},
                                             {DraftRule::KSeq, 200'000},
                                             {DraftRule::Naive, 200'000}};
  for (const auto& [rule, n_draws] : tried) {
    std::vector<int> count(kVocab);
    double kept = 0, n_kept = 0;
    for (int i = 0; i < n_draws; i++) {
      PhiloxUniforms uniforms(static_cast<std::uint64_t>(i));
      count[static_cast<std::size_t>(decide(distributions, rule, 2, uniforms, kept))]++;
      n_kept += kept;
    }
    EXPECT_LT(chi_square(count, distributions.p), kOnceInAThousand) << static_cast<int>(rule);
    EXPECT_GT(n_kept, 0.05 * n_draws);
    EXPECT_LT(n_kept, 0.95 * n_draws) << "both outcomes of the rule occur";
    // A million draws detect a distribution that is 3 % off in every second token.
    std::vector<double> near = distributions.p;
    double sum = 0;
    for (std::size_t v = 0; v < kVocab; v++)
      sum += near[v] *= v % 2 == 0 ? 1 + 30 / std::sqrt(n_draws) : 1;
    for (double& p : near) p /= sum;
    EXPECT_GT(chi_square(count, near), 2 * kOnceInAThousand);
  }
}

TEST(DraftRules, k_seq_divides_by_the_smallest_valid_factor) {
  const std::vector<double> p{0.5, 0.3, 0.2}, q{0.2, 0.2, 0.6};
  for (const int k : {2, 3, 5}) {
    const double rho = k_seq_factor(p, q, k);
    const auto slack = [&](double factor) {
      double beta = 0;
      for (std::size_t v = 0; v < p.size(); v++) beta += std::min(q[v], p[v] / factor);
      return factor * beta - (1 - std::pow(1 - beta, k));
    };
    EXPECT_GE(slack(rho), 0);
    EXPECT_LT(slack(rho - 1e-6), 0);
  }
  EXPECT_EQ(k_seq_factor(p, q, 1), 1);  // one candidate: Leviathan's rule
  EXPECT_EQ(k_seq_factor(p, p, 4), 1);  // the same distribution: all are accepted
}

TEST(DraftRules, as_released_treats_argmax_candidates_as_sampled) {
  // The candidates are always the two most probable tokens, but q is a softmax over them. This
  // counter-example gives (5/6, 0, 1/6).
  StepOutput out;
  out.vocab_size = 3;
  TokenTree tree;
  tree.add(0, -1, RowTag{});
  for (const TokenId x : {0, 1}) tree.add(x, 0, RowTag{RowTag::Kind::Draft, 1, 0});
  for (int row = 0; row < 3; row++) {
    for (const double p : {0.5, 0.3, 0.2}) out.logits.push_back(static_cast<float>(std::log(p)));
  }
  std::vector<Candidates> candidates(3);
  candidates[0].rows = {1, 2};
  const auto distribution_with = [&](std::vector<double> q) {
    candidates[0].distribution = std::move(q);
    return enumerate([&](UniformSource& uniforms) {
      const Decision decision = reject_drafted(std::vector<TokenId>{0}, tree, candidates, out,
                                               {.temperature = 1}, DraftRule::Without, uniforms);
      return std::vector<TokenId>{decision.emitted[0]};
    });
  };
  EXPECT_LE(distance(distribution_with({0.6, 0.4, 0}), {{{0}, 5.0 / 6}, {{2}, 1.0 / 6}}), 1e-6);
  EXPECT_LE(distance(distribution_with({}), {{{0}, 0.5}, {{1}, 0.3}, {{2}, 0.2}}), 1e-6);
}

TEST(DraftRules, ties_reject_and_probability_zero_is_never_accepted) {
  class Lowest : public UniformSource {
   public:
    double accept(std::uint32_t, std::uint32_t, double chance) override { return chance; }
    double residual(std::uint32_t, std::span<const double>) override { return 0.5; }
    double proposal(std::uint32_t, std::uint32_t, std::span<const double>) override { return 0.5; }
  } lowest;
  double accepted = 1;
  for (const auto rule : {DraftRule::Without, DraftRule::With, DraftRule::KSeq}) {
    // The target never chooses 2, the draft always does.
    decide({.p = {0.5, 0.5, 0}, .q = {0, 0, 1}}, rule, 1, lowest, accepted);
    EXPECT_EQ(accepted, 0);
  }
}

TEST(DraftRules, equal_distributions_accept_every_candidate) {
  const Distributions same{.p = {0.5, 0.25, 0.25}, .q = {0.5, 0.25, 0.25}};
  for (const auto rule : {DraftRule::Without, DraftRule::With, DraftRule::KSeq}) {
    double accepted = 1;
    const Distribution distribution = enumerate([&](UniformSource& uniforms) {
      const TokenId token = decide(same, rule, 2, uniforms, accepted);
      return std::vector<TokenId>{token, static_cast<TokenId>(accepted)};
    });
    for (const auto& [result, p] : distribution) {
      if (result[1] == 0) {
        EXPECT_LE(p, 1e-6);
      }
    }
  }
}

// Runs of whole decoders, with drafting, verification, caches and cuts, on a pair of toy models.

struct Case {
  std::string name;
  std::string decoder;
  OptionValues options;
  int vocab = 3;
  int n_tokens = 3;
  Sampling sampling{.temperature = 0.8f, .mode = Sampling::Mode::Rejection};
  std::vector<TokenId> eos_ids = {};
};

std::vector<Case> cases() {
  std::vector<Case> all{
      {"chain of 1", "speculative", {{"gamma", "1"}}, 4},
      {"chain of 2", "speculative", {{"gamma", "2"}}, 4},
      {"a whole chain and its bonus", "speculative", {{"gamma", "3"}}, 3, 4},
      {"a warmer draft", "speculative", {{"gamma", "2"}, {"draft_temperature", "1.7"}}, 4},
      {"an argmax draft", "speculative", {{"gamma", "2"}, {"draft_temperature", "0"}}, 4},
      {"a filtered draft", "speculative", {{"gamma", "2"}, {"draft_top_k", "2"}}, 4},
      {"stop_below", "speculative", {{"gamma", "3"}, {"stop_below", "0.55"}}, 3, 4},
      {"stop_below, argmax draft",
       "speculative",
       {{"gamma", "2"}, {"stop_below", "0.4"}, {"draft_temperature", "0"}},
       4},
  };
  for (const char* rule : {"without", "with", "naive", "kseq"}) {
    const auto tree = [&](const std::string& what, OptionValues options, int vocab, int n) {
      options["rule"] = rule;
      all.push_back({std::string(rule) + ", " + what, "mcsd", std::move(options), vocab, n});
    };
    tree("2", {{"k_config", "2"}}, 4, 2);
    tree("3", {{"k_config", "3"}}, 4, 2);
    tree("more candidates than tokens", {{"k_config", "4"}}, 3, 2);
    tree("2,1", {{"k_config", "2,1"}}, 3, 3);
    tree("1,2", {{"k_config", "1,2"}}, 3, 3);
    tree("2,2", {{"k_config", "2,2"}, {"draft_top_k", "2"}}, 3, 3);
    tree("argmax draft", {{"k_config", "2,2"}, {"draft_temperature", "0"}}, 4, 3);
    tree("stop_below", {{"k_config", "2,1"}, {"stop_below", "0.5"}}, 3, 3);
  }
  // The target's filters and penalty differ from the draft's.
  const auto filtered = [&](const std::string& what, const char* decoder, OptionValues options) {
    options.insert({{"draft_top_p", "1"}, {"draft_top_k", "3"}});
    Case c{what + ", filters", decoder, std::move(options), 4, 3};
    c.sampling.top_p = 0.8f;
    c.sampling.min_p = 0.05f;
    c.sampling.repetition_penalty = 1.3f;
    all.push_back(c);
    c.name += ", an end token";
    c.eos_ids = {2};
    all.push_back(c);
  };
  filtered("speculative", "speculative", {{"gamma", "2"}});
  for (const char* rule : {"without", "with", "naive", "kseq"}) {
    const OptionValues tree{{"k_config", "2,1"}, {"rule", rule}};
    for (const auto& [what, option, value] :
         {std::tuple{"", "stop_below", "0"}, std::tuple{", argmax draft", "draft_temperature", "0"},
          std::tuple{", stop_below", "stop_below", "0.5"}}) {
      OptionValues options = tree;
      options[option] = value;
      filtered(rule + std::string(what), "mcsd", std::move(options));
    }
  }
  return all;
}

Distribution expected_distribution(ToyModel& model,
                                   const Case& c,
                                   const std::vector<TokenId>& prompt) {
  // rejection_test.cpp compares plain decoding with distributions written by hand.
  const Distribution distribution = plain_distribution(
      [&](std::span<const TokenId> text) {
        return token_distribution(model.logits_after(text), c.sampling, text);
      },
      prompt, c.n_tokens);
  Distribution cut_distribution;
  for (const auto& [tokens, p] : distribution) {
    auto end = std::ranges::find_first_of(tokens, c.eos_ids);
    if (end != tokens.end()) ++end;
    cut_distribution[std::vector(tokens.begin(), end)] += p;
  }
  return cut_distribution;
}

Job job_of(const Case& c, LanguageModel& draft, UniformSource& uniforms) {
  Job job;
  job.decoder = c.decoder;
  job.options = c.options;
  job.sampling = c.sampling;
  job.limits.max_tokens = c.n_tokens;
  job.limits.eos_ids = c.eos_ids;
  job.draft = &draft;
  job.uniforms = &uniforms;
  return job;
}

TEST(DraftRules, every_decoder_and_rule_keeps_the_distribution_exactly) {
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1};
  for (const Case& c : cases()) {
    std::int64_t n_accepted = 0, n_rejected = 0;
    double n_stops = 0;
    for (std::uint64_t seed = 0; seed < 3; seed++) {
      const ToyShape shape{.vocab = c.vocab, .context = 2, .spread = 3, .seed = seed};
      ToyModel model(shape), draft(draft_of(shape));
      const Distribution distribution = enumerate([&](UniformSource& uniforms) {
        const Outcome outcome = run(model, prompt, job_of(c, draft, uniforms));
        n_accepted += outcome.n_accepted;
        n_rejected += outcome.n_rejected;
        n_stops += outcome.metrics.at("draft_stops");
        return outcome.tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact) << c.name;
    }
    EXPECT_GT(n_accepted, 0) << c.name;
    EXPECT_GT(n_rejected, 0) << c.name;
    const auto stop_below = c.options.find("stop_below");
    const bool may_stop = stop_below != c.options.end() && stop_below->second != "0";
    EXPECT_EQ(n_stops > 0, may_stop) << c.name;
  }
}

/// Both decoders and SEED with trees on "auto", and all rules.
std::vector<Case> sized_cases() {
  std::vector<Case> all{
      {"speculative", "speculative", {{"gamma", "auto"}}, 3, 4},
      {"argmax draft", "speculative", {{"gamma", "auto"}, {"draft_temperature", "0"}}, 3, 4}};
  for (const char* rule : {"without", "with", "naive", "kseq"})
    for (const char* decoder : {"mcsd", "seed"})
      all.push_back({decoder + std::string(", ") + rule,
                     decoder,
                     {{"k_config", "auto"}, {"rule", rule}},
                     2,
                     4});
  return all;
}

// A tree that depended on a number drawn in its own step would change the distribution.
TEST(DraftRules, chosen_trees_keep_the_distribution_exactly) {
  const std::vector<TokenId> prompt{0, 1, 1, 0, 1};
  for (const Case& c : sized_cases()) {
    std::int64_t n_accepted = 0;
    bool vary = false;
    for (const double row_share : {0.1, 0.3}) {
      ChosenSizes sizes;
      const ToyShape shape{.vocab = c.vocab, .context = 2, .spread = 3, .seed = 1};
      ToyModel model(shape), draft(draft_of(shape));
      const Distribution distribution = enumerate([&](UniformSource& uniforms) {
        StepControl control = control_of(row_share);
        Job job = job_of(c, draft, uniforms);
        job.control = &control;
        const Outcome outcome = run(model, prompt, job);
        n_accepted += outcome.n_accepted;
        sizes.add(outcome);
        return outcome.tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact)
          << c.name << ", row " << row_share;
      vary |= sizes.vary();
    }
    EXPECT_GT(n_accepted, 0) << c.name;
    EXPECT_TRUE(vary) << c.name << ": the results of steps changed no size";
  }
}

// As in rejection_test.cpp: two runs with one seed use the same random numbers.
TEST(DraftRules, chosen_trees_do_not_depend_on_an_earlier_run_of_the_seed) {
  const std::vector<TokenId> prompt{0, 1, 1, 0, 1};
  for (const Case& c : sized_cases()) {
    const ToyShape shape{.vocab = c.vocab, .context = 2, .spread = 3, .seed = 1};
    ToyModel model(shape), draft(draft_of(shape));
    for (const double row_share : {0.22, 0.26, 0.3, 0.5}) {
      const Distribution distribution = enumerate_seeds([&](UniformSource& uniforms) {
        StepControl control = control_of(row_share);
        Job job = job_of(c, draft, uniforms);
        job.control = &control;
        run(model, prompt, job);
        return run(model, prompt, job).tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact)
          << c.name << ", row " << row_share;
    }
  }
}

TEST(DraftRules, chains_keep_the_joint_distribution_exactly) {
  // Enumerates one step at a time, each after a fresh prefill, as a step's distribution depends
  // only on the sequence.
  const std::vector<TokenId> prompt{0, 1, 2};
  std::vector<Case> chains{{"speculative", "speculative", {{"gamma", "3"}}, 5, 4}};
  for (const char* rule : {"without", "with", "naive", "kseq"})
    chains.push_back({rule, "mcsd", {{"k_config", "1,1,1"}, {"rule", rule}}, 5, 4});
  for (const Case& c : chains) {
    for (const float spread : {1.0f, 3.5f, 8.7f}) {
      const ToyShape shape{.vocab = 5, .context = 8, .spread = spread, .seed = 6};
      ToyModel model(shape), draft(draft_of(shape, spread));
      const auto n_written = [&](const auto& text) {
        return std::ssize(text) - std::ssize(prompt);
      };
      const Distribution texts = enumerate_steps(
          [&](const std::vector<TokenId>& text, UniformSource& uniforms) {
            Job job = job_of(c, draft, uniforms);
            job.limits.max_tokens -= static_cast<int>(n_written(text));
            Lane lane = start(model, text, job);
            Lane* lanes[] = {&lane};
            Stepper(model, nullptr).step(lanes);
            return std::vector(lane.sequence.tokens().begin(), lane.sequence.tokens().end());
          },
          prompt, [&](const auto& text) { return n_written(text) == c.n_tokens; });
      Distribution distribution;
      for (const auto& [text, p] : texts)
        distribution[{text.begin() + std::ssize(prompt), text.end()}] += p;
      EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact)
          << c.name << " " << spread;
    }
  }
}

TEST(DraftRules, a_useless_draft_keeps_the_distribution) {
  // With another seed, the draft's distributions are unrelated to the target's.
  const std::vector<TokenId> prompt{0, 1, 2};
  for (const Case& c : {cases()[1], cases()[9]}) {
    ToyModel model({.vocab = c.vocab, .context = 2, .spread = 3, .seed = 1});
    ToyModel draft({.vocab = c.vocab, .context = 1, .spread = 6, .seed = 99});
    const Distribution distribution = enumerate([&](UniformSource& uniforms) {
      return run(model, prompt, job_of(c, draft, uniforms)).tokens;
    });
    EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact) << c.name;
  }
}

TEST(DraftRules, a_draft_of_some_tokens_keeps_the_distribution_by_every_rule) {
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1};
  for (const Case& c : cases()) {
    for (const std::uint64_t mask : {0b101, 0b010}) {
      ToyShape shape{.vocab = c.vocab, .context = 2, .spread = 3, .seed = 2};
      ToyModel model(shape);
      shape.output_mask = mask;
      ToyModel draft(draft_of(shape));
      const Distribution distribution = enumerate([&](UniformSource& uniforms) {
        return run(model, prompt, job_of(c, draft, uniforms)).tokens;
      });
      EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact)
          << c.name << " " << mask;
    }
  }
}

TEST(DraftRules, a_uniform_draft_keeps_the_distribution_by_every_rule) {
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1};
  for (const Case& c : cases()) {
    ToyModel model({.vocab = c.vocab, .context = 2, .spread = 3, .seed = 2});
    ToyModel draft({.vocab = c.vocab, .context = 2, .spread = 0, .seed = 2});
    const Distribution distribution = enumerate([&](UniformSource& uniforms) {
      return run(model, prompt, job_of(c, draft, uniforms)).tokens;
    });
    EXPECT_LE(distance(distribution, expected_distribution(model, c, prompt)), kExact) << c.name;
  }
}

TEST(DraftRules, only_as_released_changes_the_distribution) {
  const std::vector<TokenId> prompt{0, 1, 2, 0, 1};
  std::map<std::string, double> worst;  // by rule
  for (std::uint64_t seed = 0; seed < 4; seed++) {
    const ToyShape shape{.vocab = 4, .context = 2, .spread = 3, .seed = seed};
    ToyModel model(shape), draft(draft_of(shape));
    const auto distribution_of = [&](const char* released, const char* k_config, const char* rule) {
      const Case c{"as released",
                   "mcsd",
                   {{"k_config", k_config},
                    {"rule", rule},
                    {"draft_temperature", "0"},
                    {"as_released", released}},
                   4,
                   3};
      return enumerate([&](UniformSource& uniforms) {
        return run(model, prompt, job_of(c, draft, uniforms)).tokens;
      });
    };
    const Distribution expected = expected_distribution(model, {.vocab = 4, .n_tokens = 3}, prompt);
    for (const char* rule : {"without", "with", "kseq", "naive"}) {
      EXPECT_LE(distance(distribution_of("false", "2,1", rule), expected), kExact) << rule;
      worst[rule] =
          std::max(worst[rule], total_variation(distribution_of("true", "2,1", rule), expected));
      // With one candidate per node, a one-hot distribution at the argmax candidate is exact.
      EXPECT_LE(distance(distribution_of("true", "1,1", rule), expected), kExact) << rule;
    }
  }
  for (const char* rule : {"without", "with", "kseq"}) EXPECT_GT(worst[rule], 0.05) << rule;
  EXPECT_LE(worst["naive"], kExact) << "naive samples only from the target";
}

// Mean tokens per step, for models whose distributions never change.

const std::vector<TokenId> kAnyText{0, 1, 2, 0, 1};

/// A pair of toy models whose distributions do not depend on the sequence.
struct Constant {
  explicit Constant(std::uint64_t seed)
      : target({.vocab = 3, .context = 0, .spread = 3, .seed = seed}),
        draft(draft_of({.vocab = 3, .context = 0, .spread = 3, .seed = seed})) {}

  /// Probability that a drafted token is accepted: sum min(p, q).
  double acceptance(const Sampling& sampling) const {
    const auto p = token_distribution(target.logits_after(kAnyText), sampling, kAnyText);
    const auto q = token_distribution(draft.logits_after(kAnyText), sampling, kAnyText);
    double sum = 0;
    for (std::size_t v = 0; v < p.size(); v++) sum += std::min(p[v], q[v]);
    return sum;
  }

  ToyModel target, draft;
};

/// Means over every outcome of the first step.
struct StepMeans {
  double emitted = 0, accepted = 0;
};
StepMeans first_step(Constant& pair, const std::string& decoder, const OptionValues& options) {
  Job job{.decoder = decoder, .options = options, .draft = &pair.draft};
  job.sampling = {.temperature = 0.8f, .mode = Sampling::Mode::Rejection};
  const Distribution distribution = enumerate([&](UniformSource& uniforms) {
    job.uniforms = &uniforms;
    Lane lane = start(pair.target, kAnyText, job);
    Lane* lanes[] = {&lane};
    Stepper(pair.target, nullptr).step(lanes);
    return std::vector<TokenId>{static_cast<TokenId>(lane.sequence.generated().size()),
                                static_cast<TokenId>(lane.n_accepted)};
  });
  StepMeans means;
  for (const auto& [counts, probability] : distribution) {
    means.emitted += probability * counts[0];
    means.accepted += probability * counts[1];
  }
  return means;
}

// T11.
TEST(DraftRules, tokens_per_step_follow_from_the_acceptance_rate) {
  for (std::uint64_t seed = 0; seed < 3; seed++) {
    Constant pair(seed);
    const double a = pair.acceptance({.temperature = 0.8f});
    ASSERT_GT(a, 0.3);
    ASSERT_LT(a, 0.98);
    for (int gamma = 1; gamma <= 5; gamma++) {
      const StepMeans step = first_step(pair, "speculative", {{"gamma", std::to_string(gamma)}});
      EXPECT_NEAR(step.emitted, (1 - std::pow(a, gamma + 1)) / (1 - a), kExact) << gamma;
      EXPECT_NEAR(step.accepted, step.emitted - 1, kExact) << "the last token is the target's";
    }
  }
}

// T11.
TEST(DraftRules, seeds_alpha_is_the_mean_power_of_the_acceptance_rate) {
  for (std::uint64_t seed = 0; seed < 3; seed++) {
    Constant pair(seed);
    const double b = pair.acceptance({.temperature = 0.8f});
    std::string k_config;
    double powers = 0;
    for (int k = 1; k <= 5; k++) {
      k_config += k == 1 ? "1" : ",1";
      powers += std::pow(b, k);
      const StepMeans step = first_step(pair, "seed", {{"k_config", k_config}});
      EXPECT_NEAR(step.accepted / k, powers / k, kExact) << k_config;
    }
  }
}

}  // namespace
}  // namespace engine::test

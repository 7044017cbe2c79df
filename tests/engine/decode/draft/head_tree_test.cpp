// medusa and chimera: the output is the target's whatever the heads predict, and correct heads are
// accepted to the end of the tree.
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/draft/head_tree.h"
#include "engine/decode/registry.h"
#include "tests/support/decode/chosen_sizes.h"
#include "tests/support/decode/enumerate.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/files.h"
#include "tests/support/models/toy_heads.h"

namespace engine::test {
namespace {

constexpr double kExact = 1e-12;

/// Draft heads with the predictions of a toy model of this shape.
struct Guesser {
  /// @param n_ranked  they rank only the first n_ranked tokens; 0: all
  explicit Guesser(const ToyShape& shape, int n_ranked = 0)
      : medusa(shape, 4, n_ranked), chimera(shape, 4, 3, n_ranked) {}
  DraftHeads* of(const std::string& decoder) {
    if (decoder == "medusa") return &medusa;
    return &chimera;
  }
  ToyMedusa medusa;
  ToyChimera chimera;
};

Job job_of(const std::string& decoder, OptionValues options, Guesser& guesser) {
  Job job;
  job.decoder = decoder;
  job.options = std::move(options);
  job.heads = guesser.of(decoder);
  return job;
}

struct Form {
  std::string decoder;
  OptionValues options;
};
const std::vector<Form> kForms{
    {"medusa", {}}, {"chimera", {{"drafting", "chain"}}}, {"chimera", {{"drafting", "branch"}}}};

/// A prompt whose last token is the toy model's own choice, as Medusa's heads assume.
std::vector<TokenId> prompt_it_would_write(ToyModel& model) {
  std::vector<TokenId> prompt{1, 2};
  Job one;
  one.limits.max_tokens = 1;
  prompt.push_back(run_ar(model, prompt, one).tokens.front());
  return prompt;
}

TEST(HeadTree, heads_that_rank_some_tokens_give_the_plain_output) {
  const ToyShape shape{.vocab = 9, .context = 2, .seed = 21};
  ToyModel model(shape);
  const std::vector<TokenId> prompt = prompt_it_would_write(model);
  for (const Form& form : kForms) {
    for (const int n_ranked : {1, 4, 8}) {
      for (const float temperature : {0.0f, 0.9f}) {
        Guesser guesser(shape, n_ranked);
        Job job = job_of(form.decoder, form.options, guesser);
        job.sampling.temperature = temperature;
        job.limits.max_tokens = 40;
        EXPECT_EQ(run(model, prompt, job).tokens, run_ar(model, prompt, job).tokens)
            << form.decoder << ", " << n_ranked << " tokens ranked";
      }
    }
  }
}

// T1, T2.
TEST(HeadTree, any_heads_and_tree_give_the_plain_output) {
  Dice dice(71);
  std::int64_t n_accepted = 0;
  for (int i = 0; i < 120; i++) {
    const ToyShape shape{.vocab = dice(2, 24),
                         .context = dice(1, 3),
                         .spread = static_cast<float>(dice(1, 8)),
                         .seed = static_cast<std::uint64_t>(i)};
    ToyModel model(shape);
    Guesser guesser(i % 3 ? draft_of(shape, static_cast<float>(dice(0, 8)))
                          : ToyShape{.vocab = shape.vocab, .seed = 1000});
    const Form& form = kForms[static_cast<std::size_t>(dice(0, 2))];
    Job job = job_of(form.decoder, form.options, guesser);
    const auto trees = bundled_trees();
    job.options["tree"] =
        trees[static_cast<std::size_t>(dice(0, static_cast<int>(trees.size()) - 1))];
    job.options["verify"] = dice(0, 1) ? "greedy" : "sample";
    job.limits.max_tokens = dice(1, 50);
    job.sampling = {.temperature = dice(0, 1) ? 0.0f : 0.9f, .seed = static_cast<std::uint64_t>(i)};
    if (dice(0, 3) == 0) job.limits.eos_ids = {dice(0, shape.vocab - 1)};
    if (dice(0, 3) == 0) job.limits.max_seq_len = dice(20, 40);
    if (dice(0, 3) == 0) job.sampling.repetition_penalty = 1.3f;
    const auto prompt = dice.text(dice(1, 12), shape.vocab);
    const Outcome found = run(model, prompt, job), ar = run_ar(model, prompt, job);
    ASSERT_EQ(found.tokens, ar.tokens) << described(job);
    ASSERT_EQ(found.stop, ar.stop) << described(job);
    EXPECT_LE(found.n_steps, ar.n_steps) << described(job);
    // The counts per head sum to all accepted tokens, including the last one.
    double n_told = 0;
    for (const auto& [name, value] : found.metrics)
      if (name.starts_with("head_") && name.ends_with("_accepted")) n_told += value;
    EXPECT_EQ(n_told, found.n_accepted) << described(job);
    n_accepted += found.n_accepted;
  }
  EXPECT_GT(n_accepted, 300) << "too few accepted guesses for a meaningful test";
}

TEST(HeadTree, correct_heads_give_one_token_per_level_plus_one) {
  const ToyShape shape{.vocab = 16, .context = 2, .seed = 3};
  ToyModel model(shape);
  Guesser oracle(shape);
  for (const Form& form : kForms) {
    for (const auto& [tree, depth] :
         std::vector<std::pair<std::string, int>>{{"rows8", 4}, {"medusa_sim_7b_63", 4}}) {
      Job job = job_of(form.decoder, form.options, oracle);
      job.options["tree"] = tree;
      job.limits.max_tokens = 1 + 5 * (depth + 1);
      const Outcome found = run(model, prompt_it_would_write(model), job);
      std::vector<int> expected(6, depth + 1);
      expected.back() = 1;  // the last requested token
      EXPECT_EQ(found.emitted_per_step, expected) << described(job);
    }
  }
}

TEST(HeadTree, the_first_step_drafts_after_a_prefilled_prompt) {
  const ToyShape shape{.vocab = 16, .context = 2, .seed = 3};
  ToyModel model(shape);
  Guesser oracle(shape);
  for (const Form& form : kForms) {
    Job job = job_of(form.decoder, form.options, oracle);
    job.options["tree"] = "rows8";
    job.limits.max_tokens = 12;
    // run_decoder.cpp prefills all tokens but the last in chunks of seven.
    for (const int n_prompt : {1, 2, 3, 7, 8, 9, 15, 16}) {
      const auto prompt = Dice(5).text(n_prompt, shape.vocab);
      const Outcome found = run(model, prompt, job);
      EXPECT_EQ(found.tokens, run_ar(model, prompt, job).tokens) << described(job);
      const auto first = std::ranges::find_if(
          found.events, [](const Event& e) { return std::holds_alternative<Drafted>(e); });
      ASSERT_NE(first, found.events.end());
      const auto& drafted = std::get<Drafted>(*first);
      EXPECT_EQ(drafted.tree.n_rows(), n_prompt == 1 ? 1 : 8) << form.decoder << n_prompt;
      EXPECT_EQ(drafted.forwards.empty(), n_prompt == 1);
      // Medusa's first draft is rejected if the prompt's last token is not the toy's choice.
      EXPECT_LE(found.n_steps, 4) << form.decoder << n_prompt;
    }
  }
}

TEST(HeadTree, without_the_prompts_hidden_state_a_plain_step_is_first) {
  const ToyShape shape{.vocab = 16, .context = 2, .seed = 3};
  ToyModel model(shape);
  Guesser oracle(shape);
  Job job = job_of("medusa", {{"tree", "rows8"}}, oracle);
  job.limits.max_tokens = 11;
  Sequence with(prompt_it_would_write(model), model.make_cache()), without = with.fork();
  prefill(model, with, 256, {}, /*with_state=*/true);
  prefill(model, without);
  EXPECT_EQ(run_from(model, with, job).emitted_per_step, (std::vector<int>{5, 5, 1}));
  EXPECT_EQ(run_from(model, without, job).emitted_per_step, (std::vector<int>{1, 5, 5}));
  EXPECT_EQ(run_from(model, with, job).tokens, run_from(model, without, job).tokens);
}

TEST(HeadTree, lanes_with_different_prompts_start_together) {
  const ToyShape shape{.vocab = 16, .context = 2, .seed = 3};
  ToyModel model(shape);
  Guesser guesser(draft_of(shape));
  Job job = job_of("medusa", {{"tree", "rows8"}}, guesser);
  job.limits.max_tokens = 20;
  std::vector<Lane> lanes;
  for (const int n_prompt : {1, 2, 9, 30})
    lanes.push_back(start(model, Dice(5).text(n_prompt, shape.vocab), job));
  Stepper stepper(model, nullptr);
  for (std::vector<Lane*> left; true; left.clear()) {
    for (Lane& lane : lanes)
      if (!lane.sequence.finished()) left.push_back(&lane);
    if (left.empty()) break;
    stepper.step(left);
  }
  for (const Lane& lane : lanes) {
    const auto prompt = lane.sequence.prompt(), text = lane.sequence.generated();
    const Outcome alone = run(model, {prompt.begin(), prompt.end()}, job);
    EXPECT_EQ(std::vector(text.begin(), text.end()), alone.tokens);
    EXPECT_EQ(lane.n_steps, alone.n_steps);
    EXPECT_EQ(lane.n_rows, alone.counts.at("rows"));
  }
}

TEST(HeadTree, branch_drafting_emits_more_than_chain_drafting) {
  // Chain drafting predicts each level after argmax tokens only, so its candidates suit no other
  // parent.
  const ToyShape shape{.vocab = 16, .context = 2, .spread = 3, .seed = 5};
  ToyModel model(shape);
  Guesser guesser(shape);
  double per_step[2];
  for (const bool branch : {false, true}) {
    Job job =
        job_of("chimera", {{"drafting", branch ? "branch" : "chain"}, {"tree", "rows24"}}, guesser);
    job.sampling = {.temperature = 1, .seed = 3};
    job.limits.max_tokens = 200;
    const Outcome found = run(model, {1, 2, 3}, job);
    EXPECT_EQ(found.tokens, run_ar(model, {1, 2, 3}, job).tokens);
    per_step[branch] = static_cast<double>(found.tokens.size()) / found.n_steps;
  }
  EXPECT_GT(per_step[1], per_step[0]);
}

// T16.
TEST(HeadTree, without_a_tree_every_step_is_plain_decoding) {
  const ToyShape shape{.vocab = 9, .seed = 6};
  ToyModel model(shape);
  Guesser guesser(shape);
  for (const Form& form : kForms) {
    Job job = job_of(form.decoder, form.options, guesser);
    job.options["tree"] = "none";
    const Outcome found = run(model, {4}, job), ar = run_ar(model, {4}, job);
    EXPECT_EQ(found.tokens, ar.tokens);
    EXPECT_EQ(found.emitted_per_step, ar.emitted_per_step);
  }
}

TEST(HeadTree, stop_below_keeps_only_likely_paths) {
  const ToyShape shape{.vocab = 16, .context = 2, .spread = 3, .seed = 5};
  ToyModel model(shape);
  Guesser guesser(shape);
  for (const Form& form : kForms) {
    double proposed = 0, asked = 0;  // per step
    for (const char* threshold : {"0", "0.02", "0.2", "1"}) {
      Job job = job_of(form.decoder, form.options, guesser);
      job.options["tree"] = "rows24";
      job.options["stop_below"] = threshold;
      job.limits.max_tokens = 60;
      const Outcome found = run(model, {1, 2, 3}, job), ar = run_ar(model, {1, 2, 3}, job);
      EXPECT_EQ(found.tokens, ar.tokens) << described(job);
      double n_forwards = 0;
      for (const Event& event : found.events) {
        const auto* drafted = std::get_if<Drafted>(&event);
        if (!drafted) continue;
        n_forwards += static_cast<double>(drafted->forwards.size());
        std::vector<double> path{1};
        for (std::size_t row = 1; row < drafted->q.size(); row++) {
          const auto parent = static_cast<std::size_t>(drafted->tree.parent[row]);
          path.push_back(path[parent] * static_cast<double>(drafted->q[row]));
          // q is rounded to f32, at most four times on a path.
          EXPECT_GE(path[row], (1 - 4e-7) * std::strtod(threshold, nullptr)) << described(job);
        }
      }
      const double now = static_cast<double>(found.n_proposed) / found.n_steps;
      if (threshold == std::string("1")) {  // T16
        EXPECT_EQ(found.emitted_per_step, ar.emitted_per_step) << described(job);
      } else if (threshold != std::string("0")) {
        EXPECT_LT(now, proposed) << described(job);
        if (form.decoder == "chimera") {
          EXPECT_LE(n_forwards / found.n_steps, asked) << described(job);
        }
        EXPECT_GT(found.n_accepted, 0) << described(job);
      }
      proposed = now;
      asked = n_forwards / found.n_steps;
    }
  }
}

// T13.
TEST(HeadTree, a_short_path_beside_longer_ones_ends_correctly) {
  // The target always predicts token 0, so padding with token 0 would be accepted after any leaf.
  struct AlwaysZero : ToyModel {
    using ToyModel::ToyModel;
    std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
      auto outs = ToyModel::forward(items, wants);
      for (StepOutput& out : outs)
        for (kernels::Picked& picked : out.picked) picked.id = 0;
      return outs;
    }
  };
  const ToyShape shape{.vocab = 5, .seed = 2};
  AlwaysZero model(shape);
  Guesser guesser(shape);
  Job job = job_of("medusa", {{"tree", "medusa_sim_7b_63"}}, guesser);
  job.limits.max_tokens = 30;
  const Outcome found = run(model, {1, 2}, job);
  EXPECT_EQ(found.tokens, std::vector<TokenId>(30, 0));
  TokenTree tree;
  for (const Event& event : found.events) {
    if (const auto* drafted = std::get_if<Drafted>(&event)) tree = drafted->tree;
    const auto* committed = std::get_if<Committed>(&event);
    if (!committed) continue;
    // Every emitted token except the last was a row of the tree.
    std::vector<int> alive{0};
    for (std::size_t i = 0; i + 1 < committed->tokens.size(); i++) {
      std::vector<int> next;
      for (int r = 1; r < tree.n_rows(); r++) {
        const auto at = static_cast<std::size_t>(r);
        const bool hangs = std::ranges::find(alive, tree.parent[at]) != alive.end();
        if (hangs && tree.token[at] == 0) next.push_back(r);
      }
      ASSERT_FALSE(next.empty()) << "an accepted token was not proposed";
      alive = next;
    }
  }
}

TEST(HeadTree, rows_name_their_head_and_rank) {
  const ToyShape shape{.vocab = 30, .seed = 9};
  ToyModel model(shape);
  Guesser guesser(draft_of(shape));
  for (const Form& form : kForms) {
    Job job = job_of(form.decoder, form.options, guesser);
    job.options["tree"] = "medusa_vicuna_7b_63";
    job.limits.max_tokens = 40;
    int n_whole = 0;
    for (const Event& event : run(model, {1, 2, 3}, job).events) {
      const auto* drafted = std::get_if<Drafted>(&event);
      if (!drafted || drafted->tree.n_rows() < 64) continue;
      n_whole++;
      const TokenTree& tree = drafted->tree;
      EXPECT_FALSE(drafted->forwards.empty());
      ASSERT_EQ(drafted->q.size(), tree.token.size());
      for (int r = 1; r < tree.n_rows(); r++) {
        const auto at = static_cast<std::size_t>(r);
        EXPECT_EQ(tree.tag[at].kind, RowTag::Kind::Draft);
        EXPECT_EQ(tree.tag[at].a, static_cast<int>(chain_of(tree, r).size()) - 1);
        // Siblings have different ranks and tokens, and a higher rank is never more likely.
        for (int s = 1; s < r; s++) {
          const auto other = static_cast<std::size_t>(s);
          if (tree.parent[other] != tree.parent[at]) continue;
          EXPECT_NE(tree.tag[other].b, tree.tag[at].b);
          EXPECT_NE(tree.token[other], tree.token[at]);
          EXPECT_GE(drafted->q[other], drafted->q[at]);
        }
      }
    }
    EXPECT_GT(n_whole, 0);
  }
}

TEST(HeadTree, a_head_ranks_its_tokens_by_logit_then_by_id) {
  const std::vector<float> logits{1, 3, 3, -2, 2};
  const RankedTokens ranked = ranked_tokens(logits, 3);
  EXPECT_EQ(ranked.token, (std::vector<TokenId>{1, 2, 4}));
  const float sum = std::exp(1.f) + 2 * std::exp(3.f) + std::exp(-2.f) + std::exp(2.f);
  EXPECT_NEAR(ranked.p[0], std::exp(3.f) / sum, 1e-6);
  EXPECT_NEAR(ranked.p[2], std::exp(2.f) / sum, 1e-6);
  EXPECT_EQ(ranked_tokens(logits, 10).token.size(), 5u);
  for (const float bad : {NAN, INFINITY})
    EXPECT_TRUE(ranked_tokens(std::vector<float>{1, bad, 2}, 2).token.empty());
}

TEST(HeadTree, heads_with_nan_logits_give_plain_decoding) {
  struct SilentMedusa : ToyMedusa {
    using ToyMedusa::ToyMedusa;
    std::vector<float> logits(std::span<const float> hidden, int n_heads) override {
      auto all = ToyMedusa::logits(hidden, n_heads);
      all[0] = NAN;  // of the first head
      return all;
    }
  };
  struct SilentSequence : ChimeraSequence {
    explicit SilentSequence(int vocab) : vocab_(static_cast<std::size_t>(vocab)) {}
    int length() const override { return length_; }
    void append(std::span<const float> hidden, std::span<const TokenId>) override {
      length_ += static_cast<int>(hidden.size() / ToyModel::kHiddenDim);
    }
    void truncate(int length) override { length_ = length; }
    void begin_draft() override {}
    std::vector<float> level(std::span<const int> parent, std::span<const TokenId>) override {
      return std::vector<float>(parent.size() * vocab_, NAN);
    }
    void fill_cache(std::span<const TokenId> /*grams*/) override {}
    GramCounts gram_counts() const override { return {}; }
    std::size_t vocab_;
    int length_ = 0;
  };
  struct SilentChimera : ToyChimera {
    using ToyChimera::ToyChimera;
    std::unique_ptr<ChimeraSequence> make_sequence(std::shared_ptr<GramCache>) override {
      return std::make_unique<SilentSequence>(vocab_size());
    }
  };
  const ToyShape shape{.vocab = 16, .seed = 4};
  ToyModel model(shape);
  SilentMedusa medusa(shape, 4);
  SilentChimera chimera(shape, 4);
  for (const Form& form : kForms) {
    Job job;
    job.decoder = form.decoder;
    job.options = form.options;
    job.heads = form.decoder == "medusa" ? static_cast<DraftHeads*>(&medusa) : &chimera;
    job.limits.max_tokens = 20;
    const Outcome found = run(model, {1, 2, 3}, job), ar = run_ar(model, {1, 2, 3}, job);
    EXPECT_EQ(found.tokens, ar.tokens) << described(job);
    EXPECT_EQ(found.n_steps, ar.n_steps) << described(job);
  }
}

TEST(HeadTree, the_heads_tree_file_is_used_and_pruned) {
  const ToyShape shape{.vocab = 16, .seed = 4};
  ToyModel model(shape);
  ToyMedusa two(shape, 2);
  Job job;
  job.decoder = "medusa";
  job.options = {{"tree", "own"}};
  job.heads = &two;
  const auto rows_of = [&](const Job& asked) {
    std::size_t most = 0;
    for (const Event& event : run(model, {1, 2, 3}, asked).events)
      if (const auto* drafted = std::get_if<Drafted>(&event))
        most = std::max(most, drafted->tree.token.size());
    return most;
  };
  EXPECT_EQ(rows_of(job), 8u);  // the root, and 3 + 4 nodes of rows16 for two heads
  job.heads_tree = DECOSCOPE_SOURCE_DIR "/assets/trees/rows8.json";
  EXPECT_EQ(rows_of(job), 6u);  // the root and 2 + 3 nodes
  job.options["tree"] = "rows8";
  try {
    rows_of(job);
    FAIL() << "expected an error, got none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("paths of 4 tokens, expected at most 2"));
  }
}

/// The distribution after the tokens: softmax at the temperature in f64, written plainly.
std::vector<double> plain_next(const ToyModel& model,
                               double temperature,
                               std::span<const TokenId> text) {
  std::vector<double> distribution;
  double sum = 0;
  for (const float logit : model.logits_after(text)) {
    distribution.push_back(std::exp(static_cast<double>(logit) / temperature));
    sum += distribution.back();
  }
  for (double& p : distribution) p /= sum;
  return distribution;
}

/// A toy model with similar heads; its outputs after a prompt are sampled by rejection.
struct HeadsDistribution {
  HeadsDistribution(const Form& form,
                    std::uint64_t seed,
                    const std::string& tree,
                    const char* verify,
                    int n_ranked = 0)
      : shape{.vocab = 4, .context = 2, .spread = 3, .seed = seed},
        guesser(draft_of(shape, 1), n_ranked),
        job(job_of(form.decoder, form.options, guesser)) {
    job.options["tree"] = tree;
    job.options["verify"] = verify;
    job.sampling = {.temperature = 0.8f, .mode = Sampling::Mode::Rejection};
    job.limits.max_tokens = 4;
  }

  Outcome once() { return run(model, prompt, job); }

  /// Distance of the output's distribution from plain decoding's; adds the accepted tokens of all
  /// outputs to n_accepted.
  double off(std::int64_t& n_accepted) {
    const auto enumerated = runs_twice ? enumerate_seeds : enumerate;
    const Distribution distribution = enumerated([&](UniformSource& uniforms) {
      job.uniforms = &uniforms;
      StepControl control = new_control();
      job.control = &control;
      if (runs_twice) once();
      const Outcome outcome = once();
      job.control = nullptr;
      n_accepted += outcome.n_accepted;
      ended(outcome);
      return outcome.tokens;
    });
    const auto temperature = static_cast<double>(job.sampling.temperature);
    const auto next = [&](std::span<const TokenId> text) {
      return plain_next(model, temperature, text);
    };
    return distance(distribution, plain_distribution(next, prompt, job.limits.max_tokens));
  }

  ToyShape shape;
  ToyModel model{shape};
  Guesser guesser;
  Job job;
  std::vector<TokenId> prompt{0, 1, 2};
  std::function<StepControl()> new_control = [] { return StepControl(); };  // of every output
  bool runs_twice = false;  // the second output counts
  std::function<void(const Outcome&)> ended = [](const Outcome&) {};
};

// T3.
TEST(HeadTree, rejection_sampling_is_exact_for_each_verify_option) {
  for (const Form& form : kForms) {
    for (const char* verify : {"greedy", "sample"}) {
      std::int64_t n_accepted = 0;
      for (std::uint64_t seed = 0; seed < 3; seed++) {
        HeadsDistribution texts(form, seed, "rows8", verify);
        EXPECT_LE(texts.off(n_accepted), kExact) << form.decoder << " " << verify;
      }
      EXPECT_GT(n_accepted, 0) << "no candidate was accepted";
    }
  }
}

// A tree that depended on a number drawn in its own step would change the distribution.
TEST(HeadTree, chosen_trees_keep_the_distribution_exactly) {
  for (const Form& form : kForms) {
    for (const char* verify : {"greedy", "sample"}) {
      std::int64_t n_accepted = 0;
      bool vary = false;
      for (const double row_share : {0.02, 0.2}) {
        ChosenSizes sizes;
        HeadsDistribution texts(form, 1, "auto", verify);
        texts.new_control = [row_share] { return control_of(row_share); };
        texts.ended = [&sizes](const Outcome& outcome) { sizes.add(outcome); };
        EXPECT_LE(texts.off(n_accepted), kExact) << form.decoder << " " << verify;
        vary |= sizes.vary();
        texts.job.limits.max_tokens = 3;
        texts.runs_twice = true;  // with the same random numbers
        EXPECT_LE(texts.off(n_accepted), kExact) << form.decoder << " " << verify << ", twice";
      }
      EXPECT_GT(n_accepted, 0) << "no candidate was accepted";
      EXPECT_TRUE(vary) << form.decoder << ": the results of steps changed no size";
    }
  }
}

// Tokens that the heads do not rank have probability 0 under the heads and are never proposed.
TEST(HeadTree, heads_that_rank_some_tokens_keep_the_distribution_exactly) {
  for (const Form& form : kForms) {
    for (const char* verify : {"greedy", "sample"}) {
      std::int64_t n_accepted = 0;
      for (const int n_ranked : {1, 2, 3}) {
        HeadsDistribution texts(form, 1, "rows8", verify, n_ranked);
        EXPECT_LE(texts.off(n_accepted), kExact) << form.decoder << " " << verify;
      }
      EXPECT_GT(n_accepted, 0) << "no candidate was accepted";
    }
  }
}

// T3.
TEST(HeadTree, stop_below_keeps_the_distribution_exactly) {
  for (const Form& form : kForms) {
    for (const char* verify : {"greedy", "sample"}) {
      for (const char* threshold : {"0.1", "0.3", "0.6"}) {
        std::int64_t n_proposed = 0, n_unstopped = 0, n_accepted = 0;
        for (std::uint64_t seed = 0; seed < 3; seed++) {
          HeadsDistribution texts(form, seed, "rows8", verify);
          n_unstopped += texts.once().n_proposed;
          texts.job.options["stop_below"] = threshold;
          n_proposed += texts.once().n_proposed;
          EXPECT_LE(texts.off(n_accepted), kExact) << described(texts.job);
        }
        EXPECT_LT(n_proposed, n_unstopped) << threshold << ": stop_below left out no node";
        EXPECT_GT(n_accepted, 0) << threshold << ": no candidate was accepted";
      }
    }
  }
}

// T3.
TEST(HeadTree, stop_below_that_depends_on_verification_is_detected) {
  // There are two candidates, and stop_below leaves out the second.
  const std::vector<double> p{0.5, 0.3, 0.2};
  const Distribution expected{{{0}, 0.5}, {{1}, 0.3}, {{2}, 0.2}};
  enum class Stop { BeforeJudging, DropsWhatWasKept, CountsAsRefused };
  for (const DraftRule rule : {DraftRule::Without, DraftRule::Naive}) {
    const auto distribution_of = [&](Stop stop) {
      return enumerate([&](UniformSource& uniforms) {
        TokenTree tree;
        tree.add(0, -1, RowTag{});
        std::vector<Candidates> candidates(1);
        for (const TokenId x : {0, 1}) {
          if (x == 1 && stop != Stop::DropsWhatWasKept) continue;
          candidates[0].rows.push_back(tree.add(x, 0, RowTag{RowTag::Kind::Draft, 1, 0}));
          candidates.emplace_back();
        }
        StepOutput target;
        target.vocab_size = 3;
        for (int row = 0; row < tree.n_rows(); row++)
          for (const double x : p) target.logits.push_back(static_cast<float>(std::log(x)));
        if (stop == Stop::CountsAsRefused) target.logits[1] = -INFINITY;
        const std::vector<TokenId> text{0};
        TokenId token =
            reject_drafted(text, tree, candidates, target, {.temperature = 1}, rule, uniforms)
                .emitted[0];
        if (token == 1 && stop == Stop::DropsWhatWasKept)
          token = draw(p, uniforms.residual(0, p));  // verified again in the next step
        return std::vector<TokenId>{token};
      });
    };
    EXPECT_LE(distance(distribution_of(Stop::BeforeJudging), expected), 1e-6);  // logits are f32
    EXPECT_GT(total_variation(distribution_of(Stop::DropsWhatWasKept), expected), 0.1);
    EXPECT_GT(total_variation(distribution_of(Stop::CountsAsRefused), expected), 0.1);
  }
}

// SD22.
TEST(HeadTree, any_tree_shape_keeps_the_distribution_exactly) {
  const test::Folder folder;
  const std::string path = folder / "shape.json";
  // A chain, one level as wide as the vocabulary, a wider one, a path of the lowest ranks, no
  // nodes.
  for (const char* paths : {"[[0],[0,0],[0,0,0]]", "[[0],[1],[2],[3]]",
                            "[[0],[1],[2],[3],[4],[4,0]]", "[[3],[3,3]]", "[]"}) {
    // A path needs its parent in the file, but not the siblings of lower rank.
    std::ofstream(path) << "{\"paths\": " << paths << "}";
    for (const Form& form : kForms) {
      HeadsDistribution texts(form, 7, path, "sample");
      texts.job.sampling.temperature = 1;
      texts.job.limits.max_tokens = 3;
      std::int64_t n_accepted = 0;
      EXPECT_LE(texts.off(n_accepted), kExact) << form.decoder << " " << paths;
    }
  }
}

// T3.
TEST(HeadTree, one_uniform_per_path_instead_of_node_is_detected) {
  // The published program draws a uniform at each position of each path and keeps the longest path:
  // two paths through one node get two draws, which favours the proposals.
  const std::vector<double> p{0.5, 0.3, 0.2};
  const Distribution wrong = enumerate([&](UniformSource& uniforms) {
    for (int path = 0; path < 2; path++)
      if (draw(p, uniforms.residual(0, p)) == 1) return std::vector<TokenId>{1};
    return std::vector<TokenId>{draw(p, uniforms.residual(0, p))};
  });
  EXPECT_GT(distance(wrong, {{{0}, 0.5}, {{1}, 0.3}, {{2}, 0.2}}), 0.1);
}

TEST(HeadTree, typical_acceptance_stops_correctly_and_accepts_more) {
  const ToyShape shape{.vocab = 12, .spread = 2, .seed = 5};
  ToyModel model(shape);
  Guesser guesser(shape);
  for (const char* root : {"argmax", "typical", "sample"}) {
    for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
      Job job = job_of("medusa", {{"verify", "typical"}, {"root", root}}, guesser);
      job.sampling = {.temperature = 1, .seed = 2, .mode = mode};
      job.limits.max_tokens = 60;
      const Outcome typical = run(model, {1, 2, 3}, job);
      EXPECT_EQ(typical.tokens.size(), 60u);
      job.options["verify"] = "sample";
      EXPECT_LT(typical.n_steps, run(model, {1, 2, 3}, job).n_steps) << root;
    }
  }
  Job greedy = job_of("medusa", {{"verify", "typical"}}, guesser);
  EXPECT_EQ(run(model, {1, 2, 3}, greedy).tokens, run_ar(model, {1, 2, 3}, greedy).tokens);
}

TEST(HeadTree, metrics_count_proposals_and_acceptances_per_head) {
  const ToyShape shape{.vocab = 16, .seed = 3};
  ToyModel model(shape);
  Guesser oracle(shape);
  Job job = job_of("chimera", {{"tree", "rows8"}}, oracle);
  job.limits.max_tokens = 20;
  const auto metrics = run(model, {1, 2, 3}, job).metrics;
  for (int head = 1; head <= 4; head++) {
    const std::string name = "head_" + std::to_string(head);
    EXPECT_EQ(metrics.at(name + "_verified"), 4);
    EXPECT_EQ(metrics.at(name + "_accepted"), 4);
  }
}

}  // namespace
}  // namespace engine::test

// Properties of speculative and mcsd besides their output: tree shapes, rows of draft forwards,
// counts and reports of acceptance, where drafting ends.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/mcsd.h"
#include "engine/decode/registry.h"
#include "engine/decode/speculative.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

Job job_of(const char* decoder, LanguageModel& draft, OptionValues options = {}) {
  Job job;
  job.decoder = decoder;
  job.options = std::move(options);
  job.draft = &draft;
  job.limits.max_tokens = 60;
  return job;
}

std::vector<TokenTree> trees_of(const Outcome& outcome) {
  std::vector<TokenTree> trees;
  for (const Event& event : outcome.events) {
    if (const auto* drafted = std::get_if<Drafted>(&event)) trees.push_back(drafted->tree);
  }
  return trees;
}

constexpr ToyShape kShape{.vocab = 12, .context = 2, .seed = 3};
const std::vector<TokenId> kPrompt{1, 2, 3, 1, 2};

// T11.
TEST(Mcsd, a_k_config_has_its_number_of_nodes) {
  const std::map<std::string, int> nodes{{"1,1,1", 3},  {"2,1,1", 6},  {"2,2,1", 10},
                                         {"4,2,1", 20}, {"4,2,2", 28}, {"1,1,1,1", 4}};
  ToyModel model(kShape), draft(draft_of(kShape));
  for (const auto& [k_config, n] : nodes) {
    for (const float temperature : {0.0f, 0.8f}) {
      Job job = job_of("mcsd", draft, {{"k_config", k_config}});
      job.sampling.temperature = temperature;
      const TokenTree tree = trees_of(run(model, kPrompt, job)).front();
      EXPECT_EQ(tree.n_rows(), 1 + n) << k_config;
      // Nodes come level by level; siblings are adjacent, with ranks from 0.
      for (int row = 1; row < tree.n_rows(); row++) {
        const auto r = static_cast<std::size_t>(row);
        EXPECT_EQ(tree.tag[r].kind, RowTag::Kind::Draft);
        EXPECT_GE(tree.tag[r].a, tree.tag[r - 1].a);
        EXPECT_EQ(tree.tag[r].a, std::ssize(chain_of(tree, row)) - 1);
        const bool sibling = tree.parent[r] == tree.parent[r - 1];
        EXPECT_EQ(tree.tag[r].b, sibling ? tree.tag[r - 1].b + 1 : 0);
      }
    }
  }
}

TEST(Mcsd, siblings_differ_even_when_drawn_with_replacement) {
  ToyModel model({.vocab = 3, .context = 2, .seed = 3});
  ToyModel draft(draft_of({.vocab = 3, .context = 2, .seed = 3}));
  for (const char* rule : {"without", "with", "naive", "kseq"}) {
    for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
      Job job = job_of("mcsd", draft, {{"k_config", "3,2"}, {"rule", rule}});
      job.sampling = {.temperature = 1, .mode = mode};
      bool fewer = false;
      for (const TokenTree& tree : trees_of(run(model, {1, 2}, job))) {
        for (std::size_t a = 1; a < tree.token.size(); a++) {
          for (std::size_t b = a + 1; b < tree.token.size(); b++) {
            EXPECT_FALSE(tree.parent[a] == tree.parent[b] && tree.token[a] == tree.token[b])
                << rule;
          }
        }
        fewer |= tree.n_rows() > 1 && tree.n_rows() < 1 + 3 + 6;
      }
      const bool merges = mode == Sampling::Mode::Rejection &&
                          (rule == std::string("with") || rule == std::string("kseq"));
      if (merges) {
        EXPECT_TRUE(fewer) << rule << ": no token was drawn twice";
      }
    }
  }
}

// Measured times choose each step's tree, so steps and rows vary; tokens do not.
TEST(Mcsd, a_time_adaptive_tree_changes_no_token) {
  for (std::uint64_t seed = 0; seed < 24; seed++) {
    const ToyShape shape{.vocab = 12, .context = 2, .seed = seed};
    ToyModel model(shape), draft(draft_of(shape));
    for (const char* stop_below : {"0", "0.3"}) {
      Job job = job_of("mcsd", draft, {{"k_config", "auto"}, {"stop_below", stop_below}});
      job.limits.max_tokens = 60;
      job.sampling = {.temperature = seed % 2 ? 0.9f : 0, .seed = seed};
      const std::vector<TokenId> whole = run_ar(model, kPrompt, job).tokens;
      const Outcome found = run(model, kPrompt, job);
      EXPECT_EQ(found.tokens, whole) << seed;
      EXPECT_GE(found.metrics.at("tree_tokens"), 0);
      EXPECT_LE(found.metrics.at("tree_tokens"), 28);
      for (std::size_t last = 0; last < 8; last++) {
        Job with_eos = job;
        with_eos.limits.eos_ids = {whole[last]};
        EXPECT_EQ(run(model, kPrompt, with_eos).tokens, run_ar(model, kPrompt, with_eos).tokens)
            << seed << " " << last;
      }
    }
  }
}

// Statistics last over the texts: with the target as its own draft the chain grows, and with
// a steep cost of rows nothing is drafted any more.
TEST(Speculative, a_chosen_length_follows_acceptance_and_cost) {
  ToyModel model(kShape);
  StepControl cheap(CostModel([](int rows) { return 10 + 0.1 * rows; }));
  Job job = job_of("speculative", model, {});
  job.limits.max_tokens = 120;
  job.control = &cheap;
  run(model, kPrompt, job);
  const Outcome right = run(model, kPrompt, job);
  EXPECT_LE(right.n_steps, 30) << "at least four tokens a step";
  EXPECT_EQ(right.tokens, run_ar(model, kPrompt, job).tokens);
  StepControl steep(CostModel([](int rows) { return 10.0 * rows * rows; }));
  job.control = &steep;
  run(model, kPrompt, job);
  const Outcome none = run(model, kPrompt, job);
  EXPECT_GE(none.counts.at("plain_steps"), 115);
  EXPECT_EQ(none.tokens, right.tokens);
}

// Greedy and coupled: only these tokens are drafted, and the output is that of plain decoding.
TEST(Speculative, a_draft_of_some_tokens_changes_no_token) {
  ToyModel model(kShape);
  ToyShape shape = draft_of(kShape, 0);
  shape.output_mask = 0b0110'1101'0110;
  ToyModel draft(shape);
  for (const char* decoder : {"speculative", "mcsd"}) {
    for (const float temperature : {0.0f, 0.8f}) {
      Job job = job_of(decoder, draft);
      job.sampling.temperature = temperature;
      const Outcome found = run(model, kPrompt, job);
      EXPECT_EQ(found.tokens, run_ar(model, kPrompt, job).tokens);
      EXPECT_GT(found.n_accepted, 5);
      for (const TokenTree& tree : trees_of(found))
        for (std::size_t row = 1; row < tree.token.size(); row++)
          EXPECT_TRUE(shape.output_mask >> tree.token[row] & 1);
    }
  }
}

TEST(Speculative, a_draft_equal_to_the_target_is_always_accepted) {
  ToyModel model(kShape);
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const float temperature : {0.0f, 1.0f}) {
      Job job = job_of("speculative", model, {{"gamma", "5"}});
      job.sampling = {.temperature = temperature, .top_p = 0.9f, .mode = mode};
      const Outcome outcome = run(model, kPrompt, job);
      EXPECT_EQ(outcome.n_steps, 10);
      for (const int n : outcome.emitted_per_step) EXPECT_EQ(n, 6);
      EXPECT_EQ(outcome.metrics.at("acceptance_rate"), 1);
      EXPECT_EQ(outcome.metrics.at("depth_accepted"), 1);
    }
  }
}

/// Runs the job with a stop rule that fires at generated token `last`.
Outcome run_ended_by_text(LanguageModel& model, Job job, int last) {
  int n_before = 0;
  job.limits.text_end = [&n_before, last](std::span<const TokenId> emitted) {
    const int n = static_cast<int>(emitted.size());
    const int left = last + 1 - n_before;
    n_before += n;
    return left <= n ? left : 0;
  };
  return run(model, kPrompt, job);
}

TEST(Speculative, eos_inside_an_accepted_run_is_counted) {
  const ToyShape shape{.vocab = 200, .context = 2, .seed = 3};
  ToyModel model(shape), other(draft_of(shape));
  constexpr int kGamma = 5;
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (ToyModel* const draft : {&model, &other}) {
      Job job = job_of("speculative", *draft, {{"gamma", "5"}});
      job.sampling = {.temperature = 0.5f, .mode = mode};
      const std::vector<TokenId> text = run(model, kPrompt, job).tokens;
      std::set<int> offsets;
      for (int last = 0; last < 4 * (kGamma + 1); last++) {
        Job with_eos = job;
        with_eos.limits.eos_ids = {text[static_cast<std::size_t>(last)]};
        for (const Outcome& found :
             {run(model, kPrompt, with_eos), run_ended_by_text(model, job, last)}) {
          const auto& metrics = found.metrics;
          const int n = static_cast<int>(found.tokens.size());
          EXPECT_LE(n, last + 1);  // an end token may come earlier
          EXPECT_EQ(metrics.at("draft_depth"), kGamma * found.n_steps);
          EXPECT_DOUBLE_EQ(metrics.at("depth_accepted"), metrics.at("acceptance_rate"))
              << n << " tokens";
          if (draft != &model) continue;
          EXPECT_EQ(found.n_accepted, n - n / (kGamma + 1)) << n << " tokens";
          if (found.stop == StopReason::Eos) offsets.insert((n - 1) % (kGamma + 1));
        }
      }
      if (draft == &model) {
        EXPECT_EQ(offsets.size(), kGamma + 1u) << "an end token at every position of a run";
      }
    }
  }
}

TEST(Mcsd, eos_inside_an_accepted_path_is_counted) {
  const ToyShape shape{.vocab = 200, .context = 2, .seed = 3};
  ToyModel model(shape), draft(draft_of(shape));
  const Job job = job_of("mcsd", draft, {{"k_config", "3,2,1"}});
  for (int last = 0; last < 24; last++) {
    const Outcome found = run_ended_by_text(model, job, last);
    EXPECT_EQ(found.tokens.size(), static_cast<std::size_t>(last) + 1);
    EXPECT_EQ(std::llround(found.metrics.at("depth_accepted") * found.metrics.at("draft_depth")),
              found.n_accepted);
  }
}

TEST(Speculative, the_draft_is_fed_two_rows_after_full_acceptance) {
  ToyModel model(kShape), draft(draft_of(kShape));
  const Job job = job_of("speculative", draft, {{"gamma", "3"}});
  Lane lane = start(model, kPrompt, job);
  lane.decoder->read_prompt(lane.sequence);
  Lane* lanes[] = {&lane};
  Stepper stepper(model, nullptr);
  int n_full = 0, n_other = 0;
  std::size_t expected = 1;
  while (lane.sequence.generated().size() + 4 <= 60) {
    draft.n_rows.clear();
    const auto n_before = lane.sequence.tokens().size();
    stepper.step(lanes);
    ASSERT_EQ(draft.n_rows.size(), 3u);  // one forward per drafted token
    EXPECT_EQ(draft.n_rows[0], static_cast<int>(expected));
    EXPECT_EQ(draft.n_rows[1], 1);
    EXPECT_EQ(draft.n_rows[2], 1);
    const bool full = lane.sequence.tokens().size() - n_before == 4;
    (full ? n_full : n_other)++;
    expected = full ? 2 : 1;
  }
  EXPECT_GT(n_full, 0);
  EXPECT_GT(n_other, 0);
}

TEST(Mcsd, the_draft_computes_each_inner_node_once) {
  ToyModel model(kShape), draft(draft_of(kShape));
  const Job job = job_of("mcsd", draft, {{"k_config", "3,2,2"}});
  Lane lane = start(model, kPrompt, job);
  lane.decoder->read_prompt(lane.sequence);
  Lane* lanes[] = {&lane};
  Stepper stepper(model, nullptr);
  std::size_t leading = 1;
  while (lane.sequence.generated().size() + 4 <= 60) {
    draft.n_rows.clear();
    const auto n_before = lane.sequence.tokens().size();
    stepper.step(lanes);
    EXPECT_EQ(draft.n_rows, (std::vector<int>{static_cast<int>(leading), 3, 6}));
    leading = lane.sequence.tokens().size() - n_before == 4 ? 2 : 1;
  }
}

// Each verification reports p and q as compared, and after a rejection the residual distribution,
// max(0, p - q) normalised.
TEST(Speculative, rejection_sampling_reports_its_distributions) {
  ToyModel model(kShape), draft(draft_of(kShape));
  Job job = job_of("speculative", draft, {{"gamma", "3"}});
  job.sampling = {.temperature = 1, .mode = Sampling::Mode::Rejection};
  std::vector<TokenId> text = kPrompt;
  TokenTree tree;
  int n_kept = 0, n_refused = 0;
  for (const Event& event : run(model, text, job).events) {
    if (const auto* drafted = std::get_if<Drafted>(&event)) tree = drafted->tree;
    if (const auto* c = std::get_if<Committed>(&event))
      text.insert(text.end(), c->tokens.begin(), c->tokens.end());
    const auto* v = std::get_if<Verified>(&event);
    if (!v) continue;
    std::vector<TokenId> before = text;
    for (const RejectionDetail& w : v->rejection_details) {
      const auto p = token_distribution(model.logits_after(before), job.sampling, before);
      const auto q = token_distribution(draft.logits_after(before), job.sampling, before);
      EXPECT_LE(w.token.size(), kMaxRejectionTokens);
      double refused = 0;
      for (std::size_t t = 0; t < p.size(); t++) refused += std::max(0.0, p[t] - q[t]);
      const auto child = static_cast<std::size_t>(w.row) + 1;  // the next row of the chain
      ASSERT_LT(child, tree.token.size());
      EXPECT_NE(std::ranges::find(w.token, tree.token[child]), w.token.end());
      for (std::size_t i = 0; i < w.token.size(); i++) {
        const auto id = static_cast<std::size_t>(w.token[i]);
        EXPECT_FLOAT_EQ(w.p[i], static_cast<float>(p[id]));
        EXPECT_FLOAT_EQ(w.q[i], static_cast<float>(q[id]));
        if (w.residual.empty()) continue;
        EXPECT_NEAR(w.residual[i], std::max(0.0, p[id] - q[id]) / refused, 1e-6);
      }
      EXPECT_FLOAT_EQ(v->p[child],
                      static_cast<float>(p[static_cast<std::size_t>(tree.token[child])]));
      const bool kept = v->fate[child] == RowFate::Accepted;
      EXPECT_EQ(w.residual.empty(), kept);
      (kept ? n_kept : n_refused)++;
      before.push_back(tree.token[child]);
    }
    for (std::size_t r = 1; r < v->fate.size(); r++) {
      if (v->fate[r] == RowFate::Unused) {
        EXPECT_EQ(v->p[r], -1) << "unverified tokens have no p";
      }
    }
  }
  EXPECT_GT(n_kept, 5);
  EXPECT_GT(n_refused, 5);
}

TEST(Speculative, each_draft_forward_is_reported_with_rows_and_time) {
  ToyModel model(kShape), draft(draft_of(kShape));
  int n_steps = 0;
  Nanoseconds begun = 0, drafted_at = 0;
  std::vector<DraftForward> forwards;
  for (const Event& event :
       run(model, kPrompt, job_of("mcsd", draft, {{"k_config", "2,2"}})).events) {
    if (const auto* b = std::get_if<StepBegun>(&event)) begun = b->t;
    if (const auto* d = std::get_if<Drafted>(&event)) forwards = d->forwards, drafted_at = d->t;
    if (!std::holds_alternative<StepEnded>(event)) continue;
    n_steps++;
    if (forwards.empty()) continue;  // the last token needs no draft
    Nanoseconds last = 0;
    for (std::size_t level = 0; level < forwards.size(); level++) {
      EXPECT_GE(forwards[level].begun, last);
      EXPECT_GE(forwards[level].ended, forwards[level].begun);
      last = forwards[level].ended;
      if (level > 0) {
        EXPECT_EQ(forwards[level].n_rows, 2);
      }
    }
    EXPECT_LE(begun + last, drafted_at) << "draft forwards belong to the step's proposal";
  }
  EXPECT_GT(n_steps, 5);
}

TEST(Speculative, drafts_no_further_than_the_output_may_go) {
  ToyModel model(kShape), draft(draft_of(kShape));
  Job job = job_of("speculative", draft, {{"gamma", "8"}});
  for (int length = 1; length <= 12; length++) {
    job.limits.max_tokens = length;
    int n = 0;
    const Outcome outcome = run(model, kPrompt, job);
    const auto trees = trees_of(outcome);
    for (std::size_t step = 0; step < trees.size(); step++) {
      EXPECT_EQ(trees[step].n_rows() - 1, std::min(8, length - n - 1));
      n += outcome.emitted_per_step[step];
    }
  }
}

// SD09.
TEST(Speculative, drafting_ends_at_the_drafts_shorter_context) {
  ToyModel model(kShape);
  for (const int context : {1, 4, 5, 6, 9, 20}) {
    ToyShape shape = draft_of(kShape);
    shape.max_seq_len = context;
    ToyModel draft(shape);  // refuses any row outside its context
    for (const char* decoder : {"speculative", "mcsd"}) {
      const Job job = job_of(decoder, draft);
      const Outcome found = run(model, kPrompt, job);
      EXPECT_EQ(found.tokens, run_ar(model, kPrompt, job).tokens);
      std::vector<std::string> notices;
      int n_tokens = static_cast<int>(kPrompt.size());
      for (const Event& event : found.events) {
        if (const auto* e = std::get_if<Committed>(&event))
          n_tokens = e->first_pos + static_cast<int>(e->tokens.size());
        if (const auto* e = std::get_if<Notice>(&event)) {
          notices.push_back(e->text);
          EXPECT_GT(n_tokens, context) << "the notice belongs to the first step without room";
        }
        const auto* drafted = std::get_if<Drafted>(&event);
        if (!drafted || drafted->tree.n_rows() == 1) continue;
        EXPECT_LE(drafted->tree.tag.back().a, context);
        EXPECT_TRUE(notices.empty());
      }
      ASSERT_EQ(notices.size(), 1u) << "once per sequence";
      EXPECT_NE(notices[0].find("context of " + std::to_string(context) + " tokens is full"),
                std::string::npos)
          << notices[0];
      EXPECT_EQ(found.metrics.at("draft_forwards") > 0, context >= 5) << context;
      // No notice for a draft with the target's context or for an unused draft.
      ToyModel as_long(draft_of(kShape));
      Job none = job_of(decoder, as_long);
      if (none.decoder == "speculative") none = job_of(decoder, draft, {{"gamma", "0"}});
      for (const Event& event : run(model, kPrompt, none).events)
        EXPECT_FALSE(std::holds_alternative<Notice>(event)) << decoder;
    }
  }
}

// A draft model whose n-th forward fails if fails(n), as with non-finite logits.
class FailingDraft : public ToyModel {
 public:
  FailingDraft(const ToyShape& shape, std::function<bool(int)> fails, ErrorCode code)
      : ToyModel(shape), fails_(std::move(fails)), code_(code) {}
  std::vector<StepOutput> forward(std::span<const BatchItem> items, Wants wants) override {
    const bool fails = fails_(n_asked_++);
    std::vector<StepOutput> outs = ToyModel::forward(items, wants);  // leaves its rows in flight
    if (fails) throw Error(code_, "small: non-finite logits at row 0, first index 3");
    return outs;
  }

 private:
  std::function<bool(int)> fails_;
  ErrorCode code_;
  int n_asked_ = 0;
};

// SD14.
TEST(Speculative, a_failing_draft_loses_only_that_steps_proposals) {
  ToyModel model(kShape);
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const char* decoder : {"speculative", "mcsd"}) {
      const auto notices_of = [&](std::function<bool(int)> fails, int* n_drafted) {
        FailingDraft draft(draft_of(kShape), std::move(fails), ErrorCode::BadInput);
        Job job = job_of(decoder, draft);
        job.sampling.temperature = mode == Sampling::Mode::Coupled ? 0.7f : 0;
        job.sampling.mode = mode;
        const Outcome found = run(model, kPrompt, job);
        EXPECT_EQ(found.tokens, run_ar(model, kPrompt, job).tokens);
        std::vector<std::string> notices;
        for (const Event& event : found.events) {
          if (const auto* e = std::get_if<Notice>(&event)) notices.push_back(e->text);
          const auto* drafted = std::get_if<Drafted>(&event);
          if (drafted && n_drafted) *n_drafted += drafted->tree.n_rows() > 1;
        }
        return notices;
      };
      for (int failing = 0; failing < 12; failing++) {
        int n_drafted = 0;
        const auto notices =
            notices_of([=](int forward) { return forward == failing; }, &n_drafted);
        ASSERT_EQ(notices.size(), 1u) << failing;
        EXPECT_EQ(notices[0],
                  "the draft model failed: small: non-finite logits at row 0, first index 3; this "
                  "step continues without drafts, one token per step");
        EXPECT_GT(n_drafted, 3) << "later steps are drafted again";
      }
      int n_drafted = 0;
      const auto notices = notices_of([](int forward) { return forward > 5; }, &n_drafted);
      ASSERT_EQ(notices.size(), 2u) << "one notice at the first failure, one at the last";
      EXPECT_NE(notices[1].find("the rest of this text continues without drafts"),
                std::string::npos);
      EXPECT_GT(n_drafted, 0);
    }
  }
}

// SD14.
TEST(Speculative, a_lost_device_ends_the_run) {
  ToyModel model(kShape);
  FailingDraft draft(
      draft_of(kShape), [](int forward) { return forward == 4; }, ErrorCode::Device);
  EXPECT_THROW(run(model, kPrompt, job_of("speculative", draft)), Error);
}

// SD10.
TEST(Speculative, gamma_0_is_plain_decoding_and_its_limits_are_checked) {
  ToyModel model(kShape), draft(draft_of(kShape));
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const char* gamma : {"0", "1", "16"}) {
      Job job = job_of("speculative", draft, {{"gamma", gamma}});
      job.sampling = {.temperature = 0.8f, .mode = mode};
      const Outcome found = run(model, kPrompt, job), ar = run_ar(model, kPrompt, job);
      if (mode == Sampling::Mode::Coupled || gamma == std::string("0")) {
        EXPECT_EQ(found.tokens, ar.tokens) << gamma;
      }
      if (gamma != std::string("0")) continue;
      EXPECT_EQ(found.n_steps, ar.n_steps);
      EXPECT_EQ(found.n_proposed, 0);
      EXPECT_EQ(found.metrics.at("draft_forwards"), 0)
          << "the draft does not even prefill the prompt";
    }
  }
  for (const char* gamma : {"65", "-1"}) {
    try {
      complete_options(decoder_named("speculative"), {{"gamma", gamma}});
      ADD_FAILURE() << gamma;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Usage);
      for (const std::string part : {"gamma", gamma, "0", "64"})
        EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
}

TEST(Speculative, stop_below_drafts_only_confident_tokens) {
  const ToyShape shape{.vocab = 6, .context = 2, .spread = 8, .seed = 3};
  ToyModel model(shape), draft(draft_of(shape, 5));
  double rate = 0;
  for (const char* threshold : {"0", "0.5", "0.8", "1"}) {
    const Job job = job_of("speculative", draft, {{"gamma", "6"}, {"stop_below", threshold}});
    const Outcome outcome = run(model, kPrompt, job);
    for (const Event& event : outcome.events) {
      const auto* drafted = std::get_if<Drafted>(&event);
      if (!drafted) continue;
      ASSERT_EQ(drafted->q.size(), drafted->tree.token.size());
      EXPECT_EQ(drafted->q[0], 1);
      for (std::size_t row = 1; row < drafted->q.size(); row++)
        EXPECT_GE(drafted->q[row], std::strtof(threshold, nullptr));
    }
    if (threshold == std::string("1")) {  // T16: nothing is proposed
      EXPECT_EQ(outcome.n_proposed, 0);
      EXPECT_EQ(outcome.n_steps, 60);
      continue;
    }
    EXPECT_EQ(outcome.metrics.at("draft_stops") > 0, threshold != std::string("0"));
    EXPECT_GT(outcome.metrics.at("acceptance_rate"), rate) << threshold;
    rate = outcome.metrics.at("acceptance_rate");
  }
}

TEST(Speculative, coupled_noise_raises_the_acceptance_rate) {
  // With shared noise the acceptance probability is sum_i 1 / sum_j max(p_j / p_i, q_j / q_i); two
  // independent draws agree with probability sum p q.
  ToyModel model(kShape), draft(draft_of(kShape));
  double match = 0, independent = 0;
  const auto p = token_distribution(model.logits_after(kPrompt), {.temperature = 1}, kPrompt);
  const auto q = token_distribution(draft.logits_after(kPrompt), {.temperature = 1}, kPrompt);
  for (std::size_t i = 0; i < p.size(); i++) {
    double sum = 0;
    for (std::size_t j = 0; j < p.size(); j++) sum += std::max(p[j] / p[i], q[j] / q[i]);
    match += 1 / sum;
    independent += p[i] * q[i];
  }
  Job job = job_of("speculative", draft, {{"gamma", "1"}});
  job.limits.max_tokens = 2;
  constexpr int kRuns = 4000;
  int n_accepted = 0;
  for (int i = 0; i < kRuns; i++) {
    job.sampling = {.temperature = 1, .seed = static_cast<std::uint64_t>(i)};
    n_accepted += run(model, kPrompt, job).emitted_per_step[0] == 2;
  }
  // Four standard deviations.
  EXPECT_NEAR(n_accepted / static_cast<double>(kRuns), match, 4 * 0.5 / std::sqrt(kRuns));
  EXPECT_GT(match, independent + 0.1);
}

TEST(Speculative, the_draft_uses_its_own_temperature_and_filters) {
  ToyModel model(kShape), draft(draft_of(kShape));
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const auto& [own, distribution] : std::vector<std::pair<OptionValues, Sampling>>{
             {{}, {.temperature = 0.7f, .top_k = 5}},  // the target's settings
             {{{"draft_temperature", "3"}}, {.temperature = 3, .top_k = 5}},
             {{{"draft_top_k", "2"}}, {.temperature = 0.7f, .top_k = 2}},
             {{{"draft_top_k", "0"}, {"draft_top_p", "0.6"}}, {.temperature = 0.7f, .top_p = 0.6f}},
             {{{"draft_min_p", "0.5"}}, {.temperature = 0.7f, .top_k = 5, .min_p = 0.5f}}}) {
      Job job = job_of("speculative", draft, own);
      job.options["gamma"] = "1";
      job.sampling = {.temperature = 0.7f, .top_k = 5, .seed = 8, .mode = mode};
      const Outcome outcome = run(model, kPrompt, job);
      std::vector<TokenId> text = kPrompt;
      for (const Event& event : outcome.events) {
        if (const auto* committed = std::get_if<Committed>(&event))
          text.insert(text.end(), committed->tokens.begin(), committed->tokens.end());
        const auto* drafted = std::get_if<Drafted>(&event);
        if (!drafted || drafted->tree.n_rows() == 1) continue;
        const auto q = token_distribution(draft.logits_after(text), distribution, text);
        EXPECT_NEAR(drafted->q[1], q[static_cast<std::size_t>(drafted->tree.token[1])], 1e-6)
            << described(job);
        EXPECT_GT(drafted->q[1], 0);
      }
    }
  }
}

TEST(Speculative, draft_draws_are_independent) {
  PhiloxUniforms uniforms(7);
  EXPECT_NE(uniforms.proposal(3, 0, {}), uniforms.accept(3, 0, 0.5));
  EXPECT_NE(uniforms.proposal(3, 0, {}), uniforms.residual(3, {}));
  EXPECT_NE(uniforms.proposal(3, 0, {}), uniforms.proposal(3, 1, {}));
  EXPECT_NE(uniforms.proposal(3, 0, {}), uniforms.proposal(4, 0, {}));
}

TEST(Speculative, sampled_frequencies_follow_the_target_distribution) {
  // Outputs of three tokens with the real random source. Positions after a rejection are drafted
  // twice. With 63 degrees of freedom, chi-square exceeds 103.4 once in a thousand times.
  const ToyShape shape{.vocab = 4, .context = 2, .spread = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape, 3));
  const std::vector<TokenId> prompt{0, 1, 2};
  for (Job job : {job_of("speculative", draft, {{"gamma", "2"}}),
                  job_of("mcsd", draft, {{"k_config", "2,2"}})}) {
    job.limits.max_tokens = 3;
    std::map<std::vector<TokenId>, int> count;
    constexpr int kRuns = 12000;
    int n_again = 0;
    for (int i = 0; i < kRuns; i++) {
      job.sampling = {.temperature = 1,
                      .seed = static_cast<std::uint64_t>(i),
                      .mode = Sampling::Mode::Rejection};
      const Outcome outcome = run(model, prompt, job);
      count[outcome.tokens]++;
      n_again += outcome.emitted_per_step[0] == 1;
    }
    EXPECT_GT(n_again, 300) << "too few positions were drafted again";
    const auto distribution_of_next = [&](std::vector<TokenId> text, TokenId next) {
      const auto distribution = token_distribution(model.logits_after(text), job.sampling, text);
      return distribution[static_cast<std::size_t>(next)];
    };
    double chi_square = 0;
    for (int bin = 0; bin < 64; bin++) {
      const std::vector<TokenId> tokens{bin / 16, bin / 4 % 4, bin % 4};
      std::vector<TokenId> text = prompt;
      double expected = kRuns;
      for (const TokenId token : tokens) {
        expected *= distribution_of_next(text, token);
        text.push_back(token);
      }
      const double difference = count[tokens] - expected;
      chi_square += difference * difference / expected;
    }
    EXPECT_LT(chi_square, 103.4) << described(job);
  }
}

}  // namespace
}  // namespace engine::test

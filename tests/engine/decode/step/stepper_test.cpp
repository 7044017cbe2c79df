// The decoding loop: its events, its time accounting, and lanes that do not influence each other
// (T8, T9, T14).
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/decode/step/stepper.h"
#include "engine/decode/verify/verify.h"
#include "engine/event/timeline/timeline.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

std::vector<Job> jobs(LanguageModel& draft) {
  std::vector<Job> all;
  for (const char* name : {"ar", "jacobi", "fastcot", "lookahead", "prompt-lookup", "suffix",
                           "recycling", "speculative", "mcsd"}) {
    Job job;
    job.decoder = name;
    job.draft = &draft;
    all.push_back(job);
  }
  Job sliding;
  sliding.decoder = "jacobi";
  sliding.options = {{"refill", "slide"}};
  all.push_back(sliding);
  Job published;
  published.decoder = "lookahead";
  published.options = {{"preset", "paper"}, {"ngram_size", "3"}};
  all.push_back(published);
  Job sampled = published;
  sampled.options = {};
  sampled.sampling = {.temperature = 1, .mode = Sampling::Mode::Rejection};
  all.push_back(sampled);
  sampled.decoder = "mcsd";
  sampled.draft = &draft;
  all.push_back(sampled);
  return all;
}

TEST(Stepper, acceptance_rates_have_distinct_names) {
  const ToyShape shape{.vocab = 7, .context = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape));
  for (const Job& job : jobs(draft)) {
    const Outcome outcome = run(model, {1, 2, 3, 1, 2, 3, 1, 2}, job);
    const auto& metrics = outcome.metrics;
    for (const auto& [name, n] : outcome.counts)
      EXPECT_EQ(metrics.at(name), static_cast<double>(n)) << name << " " << described(job);
    for (const char* no_sum : {"rows_per_step", "acceptance_rate", "accepted_of_verified",
                               "depth_accepted", "pool_ngrams", "pool_keys"})
      EXPECT_FALSE(outcome.counts.contains(no_sum)) << no_sum;
    EXPECT_DOUBLE_EQ(metrics.at("rows_per_step"), metrics.at("rows") / outcome.n_steps);
    const double verified = static_cast<double>(outcome.n_accepted + outcome.n_rejected);
    EXPECT_EQ(metrics.contains("acceptance_rate"), outcome.n_proposed > 0) << described(job);
    EXPECT_EQ(metrics.contains("accepted_of_verified"), verified > 0) << described(job);
    if (verified == 0) continue;
    const auto accepted = static_cast<double>(outcome.n_accepted);
    EXPECT_DOUBLE_EQ(metrics.at("acceptance_rate"),
                     accepted / static_cast<double>(outcome.n_proposed));
    EXPECT_DOUBLE_EQ(metrics.at("accepted_of_verified"), accepted / verified);
    Timeline timeline;
    timeline.apply(RunStarted{.run = 1});
    for (const Event& event : outcome.events) timeline.apply(event);
    EXPECT_DOUBLE_EQ(timeline.run(1)->acceptance_rate(), metrics.at("acceptance_rate"));
  }
}

TEST(Stepper, every_decoder_keeps_the_margins_of_plain_decoding) {
  const ToyShape shape{.vocab = 7, .context = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape));
  const std::vector<TokenId> prompt{1, 2, 3, 1, 2, 3, 1, 2};
  const auto margins = [&](const Job& job) {
    Lane lane = start(model, prompt, job);
    Stepper stepper(model, nullptr);
    Lane* const one = &lane;
    while (!lane.sequence.finished()) stepper.step(std::span(&one, 1));
    return lane.margins;
  };
  for (Job job : jobs(draft)) {
    const bool chooses = job.sampling.greedy() || job.sampling.mode == Sampling::Mode::Coupled;
    const std::vector<float> found = margins(job);
    EXPECT_EQ(run(model, prompt, job).metrics.contains("near_ties"), chooses) << described(job);
    job.decoder = "ar";
    job.options.clear();
    EXPECT_EQ(found, chooses ? margins(job) : std::vector<float>{}) << described(job);
  }
}

TEST(Stepper, a_near_tie_is_within_1e_4_of_the_score) {
  EXPECT_TRUE(is_near_tie({.score = 20, .margin = 0.0019f}));
  EXPECT_TRUE(is_near_tie({.score = -20, .margin = 0.0019f}));
  EXPECT_FALSE(is_near_tie({.score = 20, .margin = 0.0021f}));
  EXPECT_TRUE(is_near_tie({.score = 0, .margin = 0.00009f}));
  EXPECT_FALSE(is_near_tie({.score = 0, .margin = 0.00011f}));
}

TEST(Stepper, a_repeated_run_gives_the_same_trace) {
  const ToyShape shape{.vocab = 7, .context = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape));
  for (Job& job : jobs(draft)) {
    if (job.sampling.temperature == 0) job.sampling.temperature = 0.9f;
    const Outcome first = run(model, {1, 2, 3, 1, 2}, job);
    run(model, {4, 4, 4}, job);  // runs in between have no influence
    const Outcome again = run(model, {1, 2, 3, 1, 2}, job);
    EXPECT_EQ(trace_of(first.events), trace_of(again.events)) << described(job);
    EXPECT_EQ(first.tokens, again.tokens);
  }
}

TEST(Stepper, propose_runs_the_draft_and_verify_the_target) {
  const ToyShape shape{.vocab = 7, .context = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape));
  for (const Job& job : jobs(draft)) {
    const Outcome whole = run(model, {1, 2, 3, 1, 2}, job);
    Lane lane = start(model, {1, 2, 3, 1, 2}, job);
    Lane* const lanes[] = {&lane};
    EventList events;
    Stepper drafting(model, &events), verifying(model, &events);
    while (!lane.sequence.finished()) {
      const int n_target = model.n_forwards;
      drafting.propose(lane);
      EXPECT_EQ(model.n_forwards, n_target) << described(job);
      const int n_draft = draft.n_forwards;
      verifying.verify(lanes);
      EXPECT_EQ(model.n_forwards, n_target + 1) << described(job);
      EXPECT_EQ(draft.n_forwards, n_draft) << described(job);
    }
    EXPECT_EQ(trace_of(events.events), trace_of(whole.events)) << described(job);
    EXPECT_GT(lane.times.propose, 0);
    EXPECT_LT(lane.times.propose, lane.compute_ns);
    const StepTimes& times = lane.times;
    EXPECT_EQ(times.propose + times.forward + times.choice + times.verify + times.commit,
              lane.compute_ns);
  }
}

TEST(Stepper, lanes_in_one_forward_decode_as_alone) {
  const ToyShape shape{.vocab = 6, .context = 2, .seed = 6};
  ToyModel model(shape), draft(draft_of(shape));
  const std::vector<Job> all = jobs(draft);
  for (const bool reversed : {false, true}) {
    std::vector<Lane> lanes;
    std::vector<Outcome> alone;
    for (std::size_t i = 0; i < all.size(); i++) {
      Job job = all[i];
      job.sampling.temperature = i % 2 ? 1.0f : job.sampling.temperature;
      job.sampling.seed = i;
      job.limits.max_tokens = 10 + 7 * static_cast<int>(i);  // some finish early
      const std::vector<TokenId> prompt(i + 1, static_cast<TokenId>(i % 6));
      alone.push_back(run(model, prompt, job));
      lanes.push_back(start(model, prompt, job, static_cast<RunId>(i + 1)));
    }
    EventList events;
    Stepper stepper(model, &events);
    for (;;) {
      std::vector<Lane*> left;
      for (Lane& lane : lanes) {
        if (!lane.sequence.finished()) left.push_back(&lane);
      }
      if (left.empty()) break;
      if (reversed) std::reverse(left.begin(), left.end());
      const int n_before = model.n_forwards;
      stepper.step(left);
      EXPECT_EQ(model.n_forwards, n_before + 1);
    }
    for (std::size_t i = 0; i < lanes.size(); i++) {
      const auto generated = lanes[i].sequence.generated();
      EXPECT_EQ(std::vector(generated.begin(), generated.end()), alone[i].tokens);
      EXPECT_EQ(lanes[i].n_steps, alone[i].n_steps);
      EXPECT_EQ(lanes[i].n_accepted, alone[i].n_accepted);
      std::vector<Event> own;
      for (const Event& event : events.events) {
        if (run_of(event) == lanes[i].run) own.push_back(event);
      }
      EXPECT_EQ(trace_of(own), trace_of(alone[i].events));
    }
  }
}

TEST(Stepper, a_fork_continues_as_its_original) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 6});
  Job job;
  Lane lane = start(model, {1, 2, 3}, job);
  Lane* lanes[] = {&lane};
  Stepper stepper(model, nullptr);
  for (int i = 0; i < 5; i++) stepper.step(lanes);
  Lane copy{.run = 2,
            .sequence = lane.sequence.fork(),
            .decoder = start(model, {1}, job).decoder,
            .sampling = job.sampling,
            .limits = job.limits,
            .tree = {}};
  Lane* copies[] = {&copy};
  while (!copy.sequence.finished()) stepper.step(copies);
  while (!lane.sequence.finished()) stepper.step(lanes);
  EXPECT_TRUE(std::ranges::equal(copy.sequence.tokens(), lane.sequence.tokens()));
  EXPECT_EQ(copy.sequence.prompt().size(), 3u);
}

TEST(Stepper, reports_every_step_in_order_and_consistently) {
  const ToyShape shape{.vocab = 6, .context = 2, .seed = 11};
  ToyModel model(shape), draft(draft_of(shape));
  for (const Job& job : jobs(draft)) {
    const std::vector<TokenId> prompt{1, 2, 3, 1, 2};
    const Outcome outcome = run(model, prompt, job);
    std::vector<TokenId> reported;
    Nanoseconds last = 0;
    StepId step = -1;
    std::int64_t n_accepted = 0;
    bool open = false;
    TokenTree tree;
    Verified verified;
    for (const Event& event : outcome.events) {
      EXPECT_GE(time_of(event), last);
      last = time_of(event);
      EXPECT_EQ(run_of(event), 1u);
      if (const auto* begun = std::get_if<StepBegun>(&event)) {
        EXPECT_FALSE(open);
        open = true;
        EXPECT_EQ(begun->step, ++step);
        EXPECT_EQ(begun->kv_len, static_cast<int>(prompt.size() + reported.size()) - 1);
      } else if (const auto* drafted = std::get_if<Drafted>(&event)) {
        tree = drafted->tree;
      } else if (const auto* v = std::get_if<Verified>(&event)) {
        verified = *v;
        EXPECT_EQ(v->fate.size(), tree.token.size());
        EXPECT_EQ(v->n_proposed, v->n_accepted + v->n_rejected + v->n_unused);
        EXPECT_EQ(v->fate[0], RowFate::Context);
        n_accepted += v->n_accepted;
      } else if (const auto* c = std::get_if<Committed>(&event)) {
        EXPECT_EQ(c->first_pos, static_cast<int>(prompt.size() + reported.size()));
        reported.insert(reported.end(), c->tokens.begin(), c->tokens.end());
        EXPECT_EQ(c->status.size(), c->tokens.size());
        EXPECT_EQ(c->origin.size(), c->tokens.size());
        // The number of accepted tokens equals the number of accepted rows.
        EXPECT_EQ(std::ranges::count(c->status, TokenStatus::Accepted), verified.n_accepted);
        for (std::size_t i = 0; i < c->tokens.size(); i++) {
          EXPECT_EQ(c->status[i] == TokenStatus::Accepted,
                    c->origin[i].kind != RowTag::Kind::Current);
          if (i + 1 < c->tokens.size()) {
            EXPECT_EQ(c->status[i], TokenStatus::Accepted);
          }
        }
      } else if (const auto* ended = std::get_if<StepEnded>(&event)) {
        open = false;
        EXPECT_EQ(ended->kv_len, static_cast<int>(prompt.size() + reported.size()) - 1);
      }
    }
    EXPECT_FALSE(open);
    EXPECT_EQ(reported, outcome.tokens);
    EXPECT_EQ(n_accepted, outcome.n_accepted);
  }
}

TEST(Stepper, a_shared_forward_is_charged_by_rows) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 6});
  Job job;
  Lane a = start(model, {1, 2}, job, 1);
  job.decoder = "jacobi";
  job.options = {{"block", "16"}};
  Lane b = start(model, {1, 2}, job, 2);
  EventList events;
  Stepper stepper(model, &events);
  Lane* both[] = {&a, &b};
  stepper.step(both);
  Nanoseconds parts[3] = {};
  Nanoseconds forward[3] = {};
  for (const Event& event : events.events) {
    if (const auto* e = std::get_if<StepEnded>(&event)) {
      parts[e->run] += e->propose + e->forward + e->verify + e->commit;
      forward[e->run] = e->forward;
    }
  }
  EXPECT_EQ(parts[1], a.compute_ns);
  EXPECT_EQ(parts[2], b.compute_ns);
  EXPECT_NEAR(static_cast<double>(forward[2]), 16.0 * static_cast<double>(forward[1]), 32.0);
}

TEST(Stepper, a_cut_settles_the_status_of_every_row) {
  // The tree is last - a - b - c, with d beside b and a row after d. The target predicts a, b, c,
  // then x.
  TokenTree tree;
  const auto guess = [](int i) {
    return RowTag{RowTag::Kind::Guess, 0, static_cast<std::int16_t>(i)};
  };
  tree.add(9, -1, RowTag{});
  tree.add(1, 0, guess(0));
  tree.add(2, 1, guess(1));
  tree.add(3, 2, guess(2));
  tree.add(7, 1, guess(1));
  tree.add(8, 4, guess(2));
  tree.add(5, 0, RowTag{RowTag::Kind::Window, 0, 1});
  using enum RowFate;
  EXPECT_EQ(
      fates_of(tree, {.path = {0, 1, 2, 3}, .emitted = {1, 2, 3, 6}, .logp = {}}),
      (std::vector<RowFate>{Context, Accepted, Accepted, Accepted, Rejected, Unused, Window}));
  // Cut after b: b counts as accepted although its keys and values are not committed, and c as
  // unused.
  EXPECT_EQ(fates_of(tree, {.path = {0, 1}, .emitted = {1, 2}, .logp = {}}),
            (std::vector<RowFate>{Context, Accepted, Accepted, Unused, Rejected, Unused, Window}));
  EXPECT_EQ(fates_of(tree, {.path = {0}, .emitted = {4}, .logp = {}}),
            (std::vector<RowFate>{Context, Rejected, Unused, Unused, Unused, Unused, Window}));
}

TEST(Stepper, refuses_invalid_prompts) {
  ToyModel model({.vocab = 6, .max_seq_len = 8});
  EXPECT_THROW(make_lane(1, model, {}, "ar", {.target = model}), Error);
  EXPECT_THROW(make_lane(1, model, std::vector<TokenId>(8, 1), "ar", {.target = model}), Error);
  EXPECT_NO_THROW(make_lane(1, model, std::vector<TokenId>(7, 1), "ar", {.target = model}));
  EXPECT_THROW(make_lane(1, model, {6}, "ar", {.target = model}), ContractError);
}

TEST(Sequence, a_cut_is_made_at_the_earliest_end) {
  ToyModel model({});
  const auto cut_of = [&](std::vector<TokenId> emitted, const Limits& limits) {
    Sequence sequence({1, 2}, model.make_cache());
    Decision decision{.path = {}, .emitted = std::move(emitted), .logp = {}};
    for (std::size_t i = 0; i < decision.emitted.size(); i++) {
      decision.path.push_back(static_cast<int>(i));
    }
    const StopReason reason = cut(decision, sequence, limits);
    EXPECT_EQ(decision.path.size(), decision.emitted.size());
    return std::pair(decision.emitted.size(), reason);
  };
  using R = StopReason;
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9}), std::pair(std::size_t{3}, R::None));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 3}), std::pair(std::size_t{3}, R::Length));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 2}), std::pair(std::size_t{2}, R::Length));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .max_seq_len = 4}),
            std::pair(std::size_t{2}, R::Context));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .eos_ids = {6}}),
            std::pair(std::size_t{2}, R::Eos));
  // The sequence ends with token 7, at any position within the remaining tokens.
  const auto ends_at_7 = [](std::span<const TokenId> emitted) {
    const auto at = std::ranges::find(emitted, 7);
    return at == emitted.end() ? 0 : static_cast<int>(at - emitted.begin()) + 1;
  };
  EXPECT_EQ(cut_of({5, 7, 7}, {.max_tokens = 9, .text_end = ends_at_7}),
            std::pair(std::size_t{2}, R::Text));
  EXPECT_EQ(cut_of({5, 7, 6}, {.max_tokens = 2, .text_end = ends_at_7}),
            std::pair(std::size_t{2}, R::Text));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 2, .text_end = ends_at_7}),
            std::pair(std::size_t{2}, R::Length));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .eos_ids = {6}, .text_end = ends_at_7}),
            std::pair(std::size_t{2}, R::Eos));
  EXPECT_EQ(cut_of({5, 6, 6}, {.max_tokens = 9, .text_end = ends_at_7}),
            std::pair(std::size_t{3}, R::None));
  EXPECT_EQ(cut_of({5, 6, 6}, {.max_tokens = 9, .eos_ids = {7, 6}}),
            std::pair(std::size_t{2}, R::Eos));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 2, .eos_ids = {6}}),
            std::pair(std::size_t{2}, R::Eos));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 2, .eos_ids = {7}}),
            std::pair(std::size_t{2}, R::Length));
  EXPECT_EQ(cut_of({5, 6}, {.max_tokens = 9, .ignore_eos = true, .eos_ids = {5}}),
            std::pair(std::size_t{2}, R::None));
  // Stop ids end a sequence as end tokens do, even with ignore_eos.
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .ignore_eos = true, .stop_ids = {7, 6}}),
            std::pair(std::size_t{2}, R::StopId));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .eos_ids = {6}, .stop_ids = {6}}),
            std::pair(std::size_t{2}, R::Eos));
  EXPECT_EQ(cut_of({5, 6, 7}, {.max_tokens = 9, .eos_ids = {7}, .stop_ids = {6}}),
            std::pair(std::size_t{2}, R::StopId));
  EXPECT_EQ(
      cut_of({5, 6, 7}, {.max_tokens = 9, .text_end = ends_at_7, .text_reason = R::StopString}),
      std::pair(std::size_t{3}, R::StopString));
}

TEST(Sequence, prefill_stops_if_its_callback_returns_false) {
  ToyModel model({});
  Sequence sequence(std::vector<TokenId>(20, 1), model.make_cache());
  int calls = 0;
  try {
    prefill(model, sequence, 6, [&](int done, int total) {
      EXPECT_EQ(total, 19);
      EXPECT_EQ(done, 6 * calls++);
      return calls < 3;
    });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
  EXPECT_EQ(sequence.cache().length(), 12);
  prefill(model, sequence);  // continues where it stopped
  EXPECT_EQ(sequence.cache().length(), 19);
}

TEST(Tree, check_refuses_anything_but_a_forest) {
  TokenTree tree;
  EXPECT_THROW(check(tree, 5), ContractError);
  tree.add(1, -1, RowTag{});
  tree.add(2, 0, RowTag{});
  EXPECT_NO_THROW(check(tree, 5));
  EXPECT_THROW(check(tree, 2), ContractError);
  tree.add(2, 3, RowTag{});
  EXPECT_THROW(check(tree, 5), ContractError);
}

/// Proposes one token and records which events came before.
class ProposalObserver final : public Decoder {
 public:
  explicit ProposalObserver(const EventList& reported) : reported_(reported) {}
  bool drafts() const override { return true; }
  TokenTree propose(const Sequence& prefix) override {
    begun = reported_.events;
    TokenTree tree;
    tree.add(prefix.tokens().back(), -1, RowTag{});
    return tree;
  }
  Decision verify(const Sequence&, const TokenTree&, const StepOutput&) override { return {}; }
  std::vector<Event> begun;

 private:
  const EventList& reported_;
};

// If the draft hangs on its device, the step has already been reported. CU12.
TEST(Stepper, a_step_is_reported_before_its_draft_runs) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 11});
  Job plain;
  plain.decoder = "ar";
  Lane lane = start(model, {1, 2, 3}, plain, 4);
  EventList reported;
  auto made = std::make_unique<ProposalObserver>(reported);
  const ProposalObserver& asked = *made;
  lane.decoder = std::move(made);
  Stepper(model, &reported).propose(lane);
  ASSERT_EQ(asked.begun.size(), 1u);
  const auto* begun = std::get_if<StepBegun>(&asked.begun[0]);
  ASSERT_NE(begun, nullptr);
  EXPECT_EQ(begun->run, 4u);
  EXPECT_EQ(begun->step, 0);
  EXPECT_EQ(begun->kv_len, 2);
  EXPECT_EQ(begun->n_rows, 0) << "not known yet";
  ASSERT_EQ(reported.events.size(), 2u);
  EXPECT_EQ(std::get<Drafted>(reported.events[1]).tree.n_rows(), 1);
}

TEST(Stepper, the_timeline_counts_the_rows_of_every_decoder) {
  const ToyShape shape{.vocab = 7, .context = 2, .seed = 5};
  ToyModel model(shape), draft(draft_of(shape));
  for (const Job& job : jobs(draft)) {
    const Outcome outcome = run(model, {1, 2, 3, 1, 2, 3, 1, 2}, job);
    Timeline timeline;
    timeline.apply(RunStarted{.run = 1});
    for (const Event& event : outcome.events) timeline.apply(event);
    EXPECT_EQ(timeline.n_inconsistent(), 0) << described(job);
    EXPECT_EQ(static_cast<double>(timeline.runs()[0].n_rows()), outcome.metrics.at("rows"))
        << described(job);
  }
}

}  // namespace
}  // namespace engine::test

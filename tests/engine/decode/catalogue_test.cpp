// The catalogue of docs/testing.md for every decoder on a toy model, a tiny random transformer and
// the bundled model, in every dtype, greedy and coupled: tokens and score bits must equal those of
// plain decoding. T3 is in verify/rejection_test.cpp; T4, T10, T11 and T15 are tested in other
// folders.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "engine/decode/registry.h"
#include "tests/support/decode/catalogue.h"

namespace engine::test {
namespace {

Sampling coupled(float temperature, std::uint64_t seed) {
  return {.temperature = temperature, .top_k = 20, .top_p = 0.95f, .seed = seed};
}

class Catalogue : public testing::TestWithParam<Subject> {
 protected:
  Loaded& on() const { return loaded(GetParam()); }
  LanguageModel& model() const { return on().model(); }
  /// The job with these settings and the subject's draft model and heads.
  Job with(Job job, int max_tokens, const Sampling& sampling = {}) const {
    job.limits.max_tokens = max_tokens;
    job.sampling = sampling;
    job.draft = &on().draft();
    job.heads = on().heads(job.decoder);
    job.heads_tree = on().heads_tree(job.decoder);
    job.ranks = on().ranks(job);
    return job;
  }
  int n_tokens() const { return on().n_tokens(); }
  bool is_bundled() const { return GetParam().kind == Subject::Kind::Bundled; }

  /// Expects the same tokens, stop reason and score bits.
  static void expect_same(const Outcome& found, const Outcome& expected, const Job& job) {
    ASSERT_EQ(found.tokens, expected.tokens) << described(job);
    EXPECT_EQ(found.stop, expected.stop) << described(job);
    ASSERT_EQ(scores_of(found), scores_of(expected)) << described(job);
  }

  /// T2 at one temperature: 50 seeds with top-k and top-p and eight without. Each seed runs every
  /// decoder with the next of its settings.
  void expect_coupled(float temperature) const {
    constexpr std::uint64_t kSeeds = 50, kUnfiltered = 8;
    std::map<std::string, std::vector<Job>> settings;
    for (const Job& job : all_settings()) {
      if (job.decoder != "ar") settings[job.decoder].push_back(job);
    }
    std::vector<Sequence> prompts;
    for (int i = 0; i < 10; i++) {
      prompts.emplace_back(on().prompt(i), model().make_cache());
      prefill(model(), prompts.back(), 64, {}, /*with_state=*/true);
    }
    std::int64_t n_accepted = 0;
    for (std::uint64_t seed = 0; seed < kSeeds + kUnfiltered; seed++) {
      Sampling sampling = coupled(temperature, seed);
      if (seed >= kSeeds) sampling.top_k = 0, sampling.top_p = 1;
      const Sequence& prompt = prompts[seed % prompts.size()];
      const Outcome ar = run_from(model(), prompt, with(Job{}, n_tokens() / 4, sampling));
      for (const auto& [decoder, jobs] : settings) {
        const Job& setting = jobs[(seed + seed / prompts.size()) % jobs.size()];
        const Job job = with(setting, n_tokens() / 4, sampling);
        const Outcome found = run_from(model(), prompt, job);
        expect_same(found, ar, job);
        n_accepted += found.n_accepted;
      }
    }
    EXPECT_GT(n_accepted, 15) << "too few accepted guesses for a meaningful test";
  }
};

/// Subjects with weights. The toy model is left out, as its cache checks itself at every commit.
class TransformerCatalogue : public Catalogue {};

// T1.
TEST_P(Catalogue, greedy_output_equals_plain_decoding) {
  std::int64_t n_accepted = 0;
  std::map<std::string, std::int64_t> of_decoder;
  const std::vector<Job> settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); i++) {
    const Job job = with(settings[i], n_tokens());
    const auto prompt = on().prompt(static_cast<int>(i));
    const Outcome found = run(model(), prompt, job);
    expect_same(found, run_ar(model(), prompt, job), job);
    n_accepted += found.n_accepted;
    of_decoder[job.decoder] += found.n_accepted;
  }
  EXPECT_GT(n_accepted, 30) << "too few accepted guesses for a meaningful test";
  if (!is_bundled()) return;
  for (const char* decoder : {"medusa", "chimera"})  // trained heads, not random ones
    EXPECT_GT(of_decoder[decoder], 30) << decoder;
}

// T1.
TEST_P(Catalogue, greedy_output_is_equal_at_every_length) {
  const std::vector<TokenId> prompt{on().prompt(3)[0]};
  const Outcome ar = run_ar(model(), prompt, with(Job{}, 12));
  for (const Job& plain : plain_settings()) {
    for (int length = 1; length <= 12; length++) {
      const Job job = with(plain, length);
      const Outcome found = run(model(), prompt, job);
      EXPECT_EQ(found.tokens, std::vector(ar.tokens.begin(), ar.tokens.begin() + length))
          << described(job);
      EXPECT_EQ(found.stop, StopReason::Length);
    }
  }
}

// T1.
TEST_P(Catalogue, greedy_output_is_equal_with_eos_at_every_offset) {
  const auto prompt = on().prompt(2);
  const int length = is_bundled() ? 8 : 14;
  const Outcome ar = run_ar(model(), prompt, with(Job{}, length));
  for (const Job& plain : plain_settings()) {
    for (const TokenId eos : ar.tokens) {
      Job job = with(plain, length);
      job.limits.eos_ids = {eos};
      const auto end = std::ranges::find(ar.tokens, eos) + 1;
      const Outcome found = run(model(), prompt, job);
      EXPECT_EQ(found.tokens, std::vector(ar.tokens.begin(), end)) << described(job);
      EXPECT_EQ(found.stop, StopReason::Eos);
    }
  }
}

// T2.
TEST_P(Catalogue, coupled_output_equals_sampling_at_temperature_0_2) {
  expect_coupled(0.2f);
}
// T2.
TEST_P(Catalogue, coupled_output_equals_sampling_at_temperature_0_7) {
  expect_coupled(0.7f);
}
// T2.
TEST_P(Catalogue, coupled_output_equals_sampling_at_temperature_1) {
  expect_coupled(1.0f);
}
// T2.
TEST_P(Catalogue, coupled_output_equals_sampling_at_temperature_2) {
  expect_coupled(2.0f);
}

// T5.
TEST_P(Catalogue, steps_emit_between_one_token_and_the_maximum) {
  const std::vector<Job> settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); i++) {
    const Job job = with(settings[i], n_tokens(), coupled(i % 2 ? 0.8f : 0, i));
    const Outcome found = run(model(), on().prompt(static_cast<int>(i) + 5), job);
    for (const int n : found.emitted_per_step) {
      EXPECT_GE(n, is_textbook(job) ? 0 : 1) << described(job);
      EXPECT_LE(n, most_tokens(job)) << described(job);
    }
    if (!is_textbook(job)) {
      EXPECT_LE(found.n_steps, n_tokens()) << described(job);  // at most AR's number of forwards
      continue;
    }
    // Textbook Jacobi: at most n + 1 forwards for a block of n.
    const int n_blocks = static_cast<int>(found.metrics.at("blocks"));
    EXPECT_LE(found.n_steps, static_cast<int>(found.tokens.size()) + n_blocks) << described(job);
  }
}

/// The tree with its rows in another topological order; `place[i]` is the new index of row i.
TokenTree reordered(const TokenTree& tree, Dice& dice, std::vector<int>& place) {
  TokenTree other;
  place.assign(tree.token.size(), -1);
  while (other.n_rows() < tree.n_rows()) {
    const auto r = static_cast<std::size_t>(dice(0, tree.n_rows() - 1));
    const int parent = tree.parent[r];
    if (place[r] >= 0 || (parent >= 0 && place[static_cast<std::size_t>(parent)] < 0)) continue;
    const int at = parent < 0 ? -1 : place[static_cast<std::size_t>(parent)];
    place[r] = other.add(tree.token[r], at, tree.tag[r]);
  }
  return other;
}

std::vector<std::uint8_t> window_rows(const TokenTree& tree) {
  std::vector<std::uint8_t> rows;
  for (const RowTag& tag : tree.tag) rows.push_back(tag.kind == RowTag::Kind::Window);
  return rows;
}

std::vector<kernels::Picked> picks(LanguageModel& model,
                                   Sequence& at,
                                   const TokenTree& tree,
                                   const Sampling& sampling) {
  const auto greedy_rows = window_rows(tree);
  BatchItem item{.cache = &at.cache(), .tree = &tree, .prefix = at.cached_tokens()};
  item.sampling = sampling;
  if (!sampling.greedy()) item.greedy_rows = greedy_rows;
  const auto out = model.forward(std::span(&item, 1), Wants{});
  at.cache().commit({});
  return out.front().picked;
}

void expect_same_pick(const kernels::Picked& found, const kernels::Picked& expected) {
  EXPECT_EQ(found.id, expected.id);
  EXPECT_EQ(found.logp, expected.logp);
  EXPECT_EQ(found.margin, expected.margin);
}

// T6.
TEST_P(Catalogue, rows_are_batch_invariant) {
  for (const Job& plain : plain_settings()) {
    for (const float temperature : {0.0f, 0.9f}) {
      SCOPED_TRACE(plain.decoder);
      const Job job = with(plain, 6, coupled(temperature, 4));
      Lane lane = start(model(), on().prompt(1), job);
      Lane* lanes[] = {&lane};
      Stepper stepper(model(), nullptr);
      Dice dice(17);
      for (int step = 0; step < 4 && !lane.sequence.finished(); step++) {
        Sequence before = lane.sequence.fork();
        stepper.step(lanes);
        const TokenTree& tree = lane.tree;
        const auto expected = picks(model(), before, tree, job.sampling);
        std::vector<int> place;
        const TokenTree shuffled = reordered(tree, dice, place);
        const auto in_other_order = picks(model(), before, shuffled, job.sampling);
        for (int row = 0; row < tree.n_rows(); row++) {
          const auto r = static_cast<std::size_t>(row);
          expect_same_pick(in_other_order[static_cast<std::size_t>(place[r])], expected[r]);
          if (dice(0, 2) > 0) continue;
          // Tests a third of the rows again: after their ancestors alone, and with random tokens in
          // all other rows.
          const std::vector<int> chain = chain_of(tree, row);
          TokenTree alone, among = tree;
          for (const int at : chain) {
            const auto a = static_cast<std::size_t>(at);
            alone.add(tree.token[a], alone.n_rows() - 1, tree.tag[a]);
          }
          for (std::size_t i = 0; i < tree.token.size(); i++) {
            const bool seen = std::ranges::find(chain, static_cast<int>(i)) != chain.end();
            if (!seen) among.token[i] = dice(0, on().last_id());
          }
          expect_same_pick(picks(model(), before, alone, job.sampling).back(), expected[r]);
          expect_same_pick(picks(model(), before, among, job.sampling)[r], expected[r]);
        }
      }
    }
  }
}

void expect_same_cache(const Model& model, const SequenceCache& found, const SequenceCache& other) {
  ASSERT_EQ(found.length(), other.length());
  std::vector<float> k, v, other_k, other_v;
  for (int layer = 0; layer < model.config().n_layers; layer++) {
    model.read_cache(found, layer, k, v);
    model.read_cache(other, layer, other_k, other_v);
    ASSERT_EQ(k, other_k) << "layer " << layer;
    ASSERT_EQ(v, other_v) << "layer " << layer;
  }
}

TEST(CatalogueJobs, cover_every_decoder) {
  for (const DecoderInfo& decoder : decoders()) {
    for (const auto& settings : {plain_settings(), all_settings()}) {
      const bool has_one = std::ranges::any_of(
          settings, [&](const Job& job) { return job.decoder == decoder.name; });
      EXPECT_TRUE(has_one) << decoder.name;
    }
  }
}

// T7.
TEST_P(TransformerCatalogue, the_cache_equals_a_fresh_prefill_after_every_step) {
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    Sampling sampling = coupled(1.0f, 9);
    sampling.mode = mode;
    int n_refused_whole = 0;
    for (const Job& plain : plain_settings()) {
      if (refusal(decoder_named(plain.decoder), sampling, plain.options)) continue;
      SCOPED_TRACE(plain.decoder);
      Lane lane = start(model(), on().prompt(4), with(plain, 14, sampling));
      Lane* lanes[] = {&lane};
      Stepper stepper(model(), nullptr);
      while (!lane.sequence.finished()) {
        const auto n_rejected = lane.n_rejected, n_accepted = lane.n_accepted;
        stepper.step(lanes);
        n_refused_whole += lane.n_rejected > n_rejected && lane.n_accepted == n_accepted;
        const auto tokens = lane.sequence.tokens();
        Sequence fresh({tokens.begin(), tokens.end()}, model().make_cache());
        prefill(model(), fresh, 64);
        expect_same_cache(*on().transformer(), lane.sequence.cache(), fresh.cache());
      }
    }
    EXPECT_GT(n_refused_whole, 0) << "no step rejected all its proposals";
  }
}

// T7.
TEST_P(TransformerCatalogue, chimera_drafts_equal_those_after_a_fresh_prefill) {
  for (const char* drafting : {"chain", "branch"}) {
    Job plain;
    plain.decoder = "chimera";
    plain.options = {{"drafting", drafting}, {"tree", "own"}};
    const Job job = with(plain, 20, coupled(1.0f, 3));
    const std::vector<TokenId> prompt = on().prompt(2);
    std::vector<TokenId> text = prompt;
    int n_drafts = 0;
    for (const Event& event : run(model(), prompt, job).events) {
      if (const auto* committed = std::get_if<Committed>(&event))
        text.insert(text.end(), committed->tokens.begin(), committed->tokens.end());
      const auto* drafted = std::get_if<Drafted>(&event);
      if (!drafted || drafted->q.empty()) continue;
      n_drafts++;
      Job again = job;
      again.limits.max_tokens -= static_cast<int>(text.size() - prompt.size());
      const Lane fresh = start(model(), text, again);
      const TokenTree tree = fresh.decoder->propose(fresh.sequence);
      EXPECT_EQ(tree.token, drafted->tree.token) << drafting << " after " << text.size();
      EXPECT_EQ(fresh.decoder->proposal_probabilities(), drafted->q) << text.size();
    }
    EXPECT_GT(n_drafts, 1);
  }
}

// T7.
TEST_P(Catalogue, a_path_with_gaps_is_committed_in_order) {
  const std::vector<TokenId> prompt = on().prompt(6);
  const TokenId token = prompt.back();
  Sequence sequence(prompt, model().make_cache());
  prefill(model(), sequence);
  // The accepted path is rows 0, 2 and 5, so rows 2 and 5 move to places 1 and 2, where rejected
  // rows are.
  TokenTree tree;
  tree.add(token, -1, RowTag{});
  for (const int parent : {0, 0, 1, 1, 2}) {
    tree.add((token + 3 * tree.n_rows()) % model().vocab_size(), parent,
             RowTag{RowTag::Kind::Guess, 0, 0});
  }
  BatchItem item{.cache = &sequence.cache(), .tree = &tree, .prefix = sequence.cached_tokens()};
  model().forward(std::span(&item, 1), Wants{});
  Decision decision;
  decision.path = {0, 2, 5};
  decision.emitted = {tree.token[2], tree.token[5], token};
  sequence.commit(decision, StopReason::None);

  const auto tokens = sequence.tokens();
  Sequence fresh({tokens.begin(), tokens.end()}, model().make_cache());
  prefill(model(), fresh);
  if (on().transformer()) {
    expect_same_cache(*on().transformer(), sequence.cache(), fresh.cache());
  }
  TokenTree next;
  next.add(token, -1, RowTag{});
  expect_same_pick(picks(model(), sequence, next, {}).front(),
                   picks(model(), fresh, next, {}).front());
}

// T7.
TEST_P(Catalogue, the_context_is_filled_to_its_last_position) {
  std::vector<TokenId> prompt = on().prompt(7);
  prompt.resize(std::min<std::size_t>(prompt.size(), 20));
  const int n_new = 11;
  Loaded full(GetParam(), static_cast<int>(prompt.size()) + n_new);
  const Outcome ar = run_ar(full.model(), prompt, with(Job{}, 100));
  EXPECT_EQ(ar.tokens.size(), static_cast<std::size_t>(n_new));
  for (const Job& setting : all_settings()) {
    Job job = with(setting, 100);
    job.ranks = full.ranks(job);
    const Outcome found = run(full.model(), prompt, job);
    EXPECT_EQ(found.stop, StopReason::Context) << described(job);
    EXPECT_EQ(found.tokens, ar.tokens) << described(job);
  }
}

// T8, T14.
TEST_P(Catalogue, a_repeated_request_gives_the_same_bits) {
  const std::vector<Job> settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); i++) {
    // Sampled runs draw noise, first guesses and window fills; a second run must draw the same.
    const Job job = with(settings[i], n_tokens() / 3, coupled(i % 3 ? 0.9f : 0, i));
    const Outcome first = run(model(), on().prompt(8), job);
    run(model(), on().prompt(static_cast<int>(i)), with(settings[(i + 7) % settings.size()], 6));
    const Outcome again = run(model(), on().prompt(8), job);
    EXPECT_EQ(trace_of(first.events), trace_of(again.events)) << described(job);
    EXPECT_EQ(first.metrics, again.metrics) << described(job);
  }
}

// T9.
TEST_P(Catalogue, lanes_in_one_forward_decode_as_alone) {
  const std::vector<Job> settings = all_settings();
  std::vector<Outcome> alone;
  std::vector<Job> jobs;
  std::vector<std::vector<TokenId>> prompts;
  int n_rejecting = 0;
  for (std::size_t i = 0; i < settings.size(); i++) {
    Sampling sampling = coupled(i % 4 ? 0.7f : 0, i);
    if (i % 2 == 1) {  // sample by rejection, if the decoder can
      sampling.mode = Sampling::Mode::Rejection;
      const DecoderInfo& info = decoder_named(settings[i].decoder);
      if (refusal(info, sampling, complete_options(info, settings[i].options))) continue;
      n_rejecting++;
    }
    // Lengths differ, so lanes leave the batch one after the other.
    jobs.push_back(with(settings[i], 2 + static_cast<int>(i), sampling));
    prompts.push_back(on().prompt(static_cast<int>(i)));
    alone.push_back(run(model(), prompts.back(), jobs.back()));
  }
  EXPECT_GT(n_rejecting, 10);
  for (const bool reversed : {false, true}) {
    std::vector<Lane> lanes;
    for (std::size_t i = 0; i < jobs.size(); i++) {
      lanes.push_back(start(model(), prompts[i], jobs[i], static_cast<RunId>(i + 1)));
    }
    EventList events;
    Stepper stepper(model(), &events);
    for (std::vector<Lane*> left;; left.clear()) {
      for (Lane& lane : lanes) {
        if (!lane.sequence.finished()) left.push_back(&lane);
      }
      if (left.empty()) break;
      if (reversed) std::ranges::reverse(left);
      stepper.step(left);
    }
    for (std::size_t i = 0; i < lanes.size(); i++) {
      std::vector<Event> own;
      for (const Event& event : events.events) {
        if (run_of(event) == lanes[i].run) own.push_back(event);
      }
      EXPECT_EQ(trace_of(own), trace_of(alone[i].events)) << described(jobs[i]);
    }
  }
}

// T12.
TEST_P(Catalogue, a_repetition_penalty_uses_each_rows_own_history) {
  const std::vector<Job> settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); i++) {
    Sampling sampling = coupled(i % 2 ? 0.8f : 0, i);
    sampling.repetition_penalty = 1.2f;
    const Job job = with(settings[i], n_tokens() / 2, sampling);
    const auto prompt = on().prompt(static_cast<int>(i) + 3);
    expect_same(run(model(), prompt, job), run_ar(model(), prompt, job), job);
  }
}

// T13.
TEST_P(Catalogue, eos_and_extreme_ids_in_the_prompt_are_harmless) {
  const std::vector<TokenId> text = on().prompt(9);
  // The prompt contains the model's next tokens twice with an end token inside, so decoders can
  // propose n-grams across the end.
  const Outcome next = run_ar(model(), text, with(Job{}, 6));
  for (const TokenId eos : {TokenId{0}, next.tokens[2], on().last_id()}) {
    std::vector<TokenId> prompt;
    for (int i = 0; i < 2; i++) {
      prompt.insert(prompt.end(), {0, text.back()});
      prompt.insert(prompt.end(), next.tokens.begin(), next.tokens.begin() + 3);
      prompt.insert(prompt.end(), {eos, on().last_id(), eos, text.back()});
    }
    prompt.insert(prompt.end(), text.begin(), text.end());
    for (const Job& plain : plain_settings()) {
      Job job = with(plain, 10);
      job.limits.eos_ids = {eos};
      const Outcome found = run(model(), prompt, job);
      expect_same(found, run_ar(model(), prompt, job), job);
      EXPECT_EQ(found.stop == StopReason::Eos, found.tokens.back() == eos) << described(job);
      job.limits.ignore_eos = true;
      expect_same(run(model(), prompt, job), run_ar(model(), prompt, job), job);
    }
  }
}

// T16.
TEST_P(Catalogue, without_proposals_every_step_is_plain_decoding) {
  const auto job_of = [](const char* decoder, OptionValues options) {
    Job job;
    job.decoder = decoder;
    job.options = std::move(options);
    return job;
  };
  const std::vector<Job> degenerate{
      job_of("jacobi", {{"block", "1"}}),
      job_of("jacobi", {{"block", "1"}, {"refill", "slide"}}),
      job_of("fastcot", {{"window", "0"}}),
      job_of("lookahead", {{"n_guesses", "0"}}),
      job_of("lookahead", {{"n_guesses", "0"}, {"window", "5"}, {"ngram_size", "5"}}),
      job_of("medusa", {{"tree", "none"}}),
      job_of("chimera", {{"tree", "none"}}),
  };
  for (const Job& setting : degenerate) {
    for (const float temperature : {0.0f, 0.7f}) {
      const Job job = with(setting, n_tokens() / 2, coupled(temperature, 3));
      const Outcome found = run(model(), on().prompt(0), job);
      const Outcome ar = run_ar(model(), on().prompt(0), job);
      expect_same(found, ar, job);
      EXPECT_EQ(found.n_steps, ar.n_steps) << described(job);
      EXPECT_EQ(found.emitted_per_step, ar.emitted_per_step) << described(job);
    }
  }
  // A tree with one candidate per node is a chain.
  for (const auto mode : {Sampling::Mode::Coupled, Sampling::Mode::Rejection}) {
    for (const float temperature : {0.0f, 0.9f}) {
      Sampling sampling = coupled(temperature, 6);
      sampling.mode = mode;
      const Job chain = with(job_of("speculative", {{"gamma", "3"}}), n_tokens() / 2, sampling);
      const Outcome expected = run(model(), on().prompt(1), chain);
      for (const char* rule : {"without", "with", "kseq"}) {
        const Job tree =
            with(job_of("mcsd", {{"k_config", "1,1,1"}, {"rule", rule}}), n_tokens() / 2, sampling);
        EXPECT_EQ(trace_of(run(model(), on().prompt(1), tree).events), trace_of(expected.events))
            << described(tree);
      }
    }
  }
  // A prompt of distinct tokens repeats no n-gram, so nothing is proposed until the output repeats.
  std::vector<TokenId> distinct;
  for (TokenId id = 0; id < std::min(8, model().vocab_size()); id++) distinct.push_back(id);
  const Job lookup = with(job_of("prompt-lookup", {}), 4);
  const Outcome found = run(model(), distinct, lookup);
  expect_same(found, run_ar(model(), distinct, lookup), lookup);
  for (const Event& event : found.events) {
    const auto* first = std::get_if<Verified>(&event);
    if (!first) continue;
    EXPECT_EQ(first->n_proposed, 0);
    break;
  }
  EXPECT_EQ(found.emitted_per_step[0], 1);
}

TEST_P(TransformerCatalogue, scaled_models_give_the_unscaled_tokens_and_scores) {
  const bool is_tiny = GetParam().kind == Subject::Kind::Tiny;
  const std::vector<ModelScale> scales =
      is_tiny ? std::vector<ModelScale>{{4, 1}, {1, 3}, {4, 2}, {16, 1}}
              : std::vector<ModelScale>{{4, 1}};
  for (const ModelScale& scale : scales) {
    Loaded large(GetParam(), 0, scale);
    EXPECT_EQ(large.transformer()->scale(), scale);
    const std::vector<Job> settings = is_tiny ? all_settings() : plain_settings();
    for (std::size_t i = 0; i < settings.size(); i++) {
      Job job = with(settings[i], is_tiny ? 24 : 8, coupled(i % 2 ? 0.8f : 0, i));
      const auto prompt = on().prompt(static_cast<int>(i));
      // Scaled heads guess the same tokens, so the steps are equal too.
      const Outcome unscaled = run(model(), prompt, job);
      job.heads = large.heads(job.decoder);
      if (job.heads) {
        EXPECT_EQ(trace_of(run(large.model(), prompt, job).events), trace_of(unscaled.events))
            << described(job);
      }
      expect_same(run(large.model(), prompt, job), run_ar(model(), prompt, job), job);
    }
  }
}

std::vector<Subject> transformers() {
  std::vector<Subject> some = all_subjects();
  std::erase_if(some, [](const Subject& one) { return one.kind == Subject::Kind::Toy; });
  return some;
}

const auto kName = [](const auto& subject) { return name_of(subject.param); };
INSTANTIATE_TEST_SUITE_P(On, Catalogue, testing::ValuesIn(all_subjects()), kName);
INSTANTIATE_TEST_SUITE_P(On, TransformerCatalogue, testing::ValuesIn(transformers()), kName);

}  // namespace
}  // namespace engine::test

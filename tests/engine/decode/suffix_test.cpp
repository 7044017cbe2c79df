#include "engine/decode/suffix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/guess/earlier_texts.h"
#include "engine/event/drafted_by.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

using Text = std::vector<TokenId>;
using Kind = GuessSource::Kind;

Job suffix_job(const OptionValues& options = {}, int max_tokens = 60) {
  Job job;
  job.decoder = "suffix";
  job.options = options;
  job.limits.max_tokens = max_tokens;
  return job;
}

std::shared_ptr<EarlierTexts> with_file(const Text& tokens) {
  return std::make_shared<EarlierTexts>(std::make_shared<PoolFile>("pool.txt", tokens));
}

/// Prompt and generated tokens.
Text sequence_of(const Text& prompt, const Outcome& outcome) {
  Text all = prompt;
  all.insert(all.end(), outcome.tokens.begin(), outcome.tokens.end());
  return all;
}

/// The trees of all steps.
std::vector<Drafted> drafts_of(const Outcome& outcome) {
  std::vector<Drafted> all;
  for (const Event& event : outcome.events)
    if (const auto* drafted = std::get_if<Drafted>(&event)) all.push_back(*drafted);
  return all;
}

int n_rows_from(const Outcome& outcome, Kind kind) {
  int n = 0;
  for (const Drafted& drafted : drafts_of(outcome))
    for (const GuessSource& source : drafted.sources) n += source.kind == kind;
  return n;
}

TEST(Suffix, gives_the_tokens_of_plain_decoding) {
  Dice dice(11);
  for (int round = 0; round < 60; round++) {
    ToyModel model({.vocab = dice(3, 40), .context = dice(1, 3), .seed = std::uint64_t(round)});
    const Text prompt = dice.text(dice(1, 30), model.vocab_size());
    Job job = suffix_job({{"n_tokens", dice(0, 1) ? "auto" : std::to_string(dice(1, 20))},
                          {"factor", dice(0, 1) ? "1" : "6"},
                          {"min_p", dice(0, 1) ? "0" : "0.3"},
                          {"shape", dice(0, 2) ? "tree" : "chain"}},
                         dice(1, 90));
    if (dice(0, 1)) job.sampling = {.temperature = 0.8f, .seed = std::uint64_t(round)};
    if (dice(0, 1)) job.limits.eos_ids = {dice(0, model.vocab_size() - 1)};
    auto texts = with_file(dice.text(dice(0, 1) * 80, model.vocab_size()));
    if (dice(0, 1)) texts->add(3, dice.text(80, model.vocab_size()), 5, 1000);
    job.texts = texts;
    const Outcome found = run(model, prompt, job);
    EXPECT_EQ(found.tokens, run_ar(model, prompt, job).tokens) << described(job);
  }
}

TEST(Suffix, every_guess_is_at_the_place_it_names) {
  Dice dice(12);
  int n_of_kind[5] = {};
  for (int round = 0; round < 40; round++) {
    ToyModel model({.vocab = 12, .context = 2, .seed = std::uint64_t(round)});
    const Text prompt = dice.text(30, model.vocab_size());
    const Text earlier = dice.text(60, model.vocab_size());
    const Text file = dice.text(60, model.vocab_size());
    auto texts = with_file(file);
    texts->add(6, earlier, 20, 1000);
    Job job = suffix_job({{"n_tokens", round % 2 ? "auto" : "12"}, {"factor", "4"}});
    job.texts = texts;
    const Outcome found = run(model, prompt, job);
    const Text own = sequence_of(prompt, found);
    for (const Drafted& drafted : drafts_of(found)) {
      ASSERT_EQ(drafted.sources.size(), drafted.tree.token.size());
      EXPECT_EQ(drafted.sources[0].kind, Kind::None);
      for (std::size_t row = 1; row < drafted.sources.size(); row++) {
        const GuessSource& source = drafted.sources[row];
        const auto pos = static_cast<std::size_t>(source.pos);
        const Text& from = source.kind == Kind::Earlier ? earlier
                           : source.kind == Kind::File  ? file
                                                        : own;
        ASSERT_EQ(from.at(pos), drafted.tree.token[row]);
        ASSERT_EQ(source.run, source.kind == Kind::Earlier ? 6U : 0U);
        if (&from == &own) {
          ASSERT_EQ(source.kind == Kind::Prompt, pos < prompt.size());
        }
        ASSERT_LE(1, source.n_seen);
        ASSERT_LE(source.n_seen, source.n_context);
        ASSERT_EQ(copied_kind(drafted.tree.tag[row]), source.kind);
        n_of_kind[static_cast<int>(source.kind)]++;
      }
    }
  }
  for (const Kind kind : {Kind::Prompt, Kind::Text, Kind::Earlier, Kind::File})
    EXPECT_GT(n_of_kind[static_cast<int>(kind)], 0) << static_cast<int>(kind);
}

TEST(Suffix, an_earlier_text_is_copied) {
  ToyModel model({.vocab = 1000, .context = 40, .seed = 4});  // repeats nothing by itself
  const Text prompt{1, 2};
  Job job = suffix_job({{"n_tokens", "16"}}, 40);
  const Outcome alone = run(model, prompt, job);
  EXPECT_EQ(alone.n_steps, 40);
  auto texts = std::make_shared<EarlierTexts>();
  texts->add(1, sequence_of(prompt, alone), prompt.size(), 1000);
  job.texts = texts;
  const Outcome again = run(model, prompt, job);
  EXPECT_EQ(again.tokens, alone.tokens);
  EXPECT_LT(again.n_steps, 12);
  EXPECT_EQ(again.counts.at("copied_from_earlier") + again.n_steps, 40);
  EXPECT_EQ(again.counts.at("copied_from_prompt"), 0);
  job.options["earlier"] = "false";
  EXPECT_EQ(run(model, prompt, job).n_steps, 40);
}

TEST(Suffix, rejection_sampling_copies_no_earlier_run) {
  ToyModel model({.vocab = 8, .context = 1, .seed = 3});
  Dice dice(13);
  const Text prompt = dice.text(20, 8);
  auto texts = with_file(dice.text(200, 8));
  texts->add(1, dice.text(200, 8), 0, 1000);
  Job job = suffix_job({{"n_tokens", "12"}, {"factor", "4"}});
  job.texts = texts;
  job.sampling = {.temperature = 1, .seed = 5};
  EXPECT_GT(n_rows_from(run(model, prompt, job), Kind::Earlier), 0);
  job.sampling.mode = Sampling::Mode::Rejection;
  const Outcome rejected = run(model, prompt, job);
  EXPECT_EQ(n_rows_from(rejected, Kind::Earlier), 0);
  EXPECT_GT(n_rows_from(rejected, Kind::File), 0);
}

// T16.
TEST(Suffix, without_a_match_it_is_plain_decoding) {
  ToyModel model({.vocab = 1000, .context = 40, .seed = 4});
  const Job job = suffix_job({}, 20);
  const Outcome found = run(model, {1, 2}, job);
  ASSERT_EQ(found.tokens, run_ar(model, {1, 2}, job).tokens);
  EXPECT_EQ(found.n_steps, 20);
  EXPECT_EQ(found.metrics.at("suffix_drafts"), 0);
  EXPECT_EQ(found.metrics.at("suffix_misses"), 20);
  EXPECT_EQ(found.metrics.at("rows"), 20);
}

TEST(Suffix, repeating_text_is_emitted_many_tokens_at_a_time) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  const Outcome outcome = run(model, {1}, suffix_job({{"n_tokens", "10"}}, 110));
  EXPECT_LT(outcome.n_steps, 30);
  for (const int n : outcome.emitted_per_step) EXPECT_LE(n, 11);
  EXPECT_EQ(outcome.counts.at("copied_from_text") + outcome.counts.at("copied_from_prompt") +
                outcome.n_steps,
            110);
}

TEST(Suffix, guesses_end_with_the_run_and_before_end_tokens) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});
  for (int max_tokens = 1; max_tokens < 40; max_tokens++) {
    const char* n_tokens = max_tokens % 2 ? "auto" : "12";
    Job job = suffix_job({{"factor", "9"}, {"n_tokens", n_tokens}}, max_tokens);
    job.limits.eos_ids = {5};
    int n_left = max_tokens;
    const Outcome outcome = run(model, {1, 5, 2, 1, 5, 2, 1}, job);
    const auto drafts = drafts_of(outcome);
    for (std::size_t step = 0; step < drafts.size(); step++) {
      std::vector<int> depth;
      for (const int parent : drafts[step].tree.parent)
        depth.push_back(parent < 0 ? 0 : depth[static_cast<std::size_t>(parent)] + 1);
      EXPECT_LT(std::ranges::max(depth), n_left);
      const auto guesses = std::span(drafts[step].tree.token).subspan(1);
      EXPECT_THAT(guesses, testing::Not(testing::Contains(5)));
      n_left -= outcome.emitted_per_step[step];
    }
  }
}

StepControl known_costs(double ms_of_a_further_row) {
  return StepControl(CostModel([=](int rows) { return 10 + ms_of_a_further_row * (rows - 1); }));
}

TEST(Suffix, auto_guesses_as_many_tokens_as_are_worth_their_time) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  Job job = suffix_job({}, 200);
  StepControl free = known_costs(0), cheap = known_costs(0.5), dear = known_costs(20);
  std::vector<int> n_steps;
  for (StepControl* control : {&free, &cheap, &dear}) {
    job.control = control;
    n_steps.push_back(run(model, {1}, job).n_steps);
  }
  EXPECT_LT(n_steps[0], 20);
  EXPECT_LT(n_steps[1], 30);
  EXPECT_GE(n_steps[2], 180) << "plain steps, except some that learn the times";
}

// The text of a run without repetitions has chance matches only.
TEST(Suffix, auto_learns_that_its_guesses_are_wrong) {
  ToyModel model({.vocab = 12, .context = 40, .seed = 4});
  StepControl control = known_costs(3);
  Job job = suffix_job({{"earlier", "false"}}, 250);
  job.control = &control;
  run(model, {1, 2}, job);
  const Outcome later = run(model, {2, 1}, job);
  EXPECT_LE(later.counts.at("rows"), 1.1 * later.n_steps);
}

TEST(Suffix, the_likeliest_continuations_come_first) {
  Dice dice(14);
  const SuffixKnowledge known;
  for (int round = 0; round < 50; round++) {
    SuffixAutomaton own, other;
    const Text text = dice.text(120, 5), more = dice.text(120, 5);
    for (const TokenId token : text) own.append(token);
    for (const TokenId token : more) other.append(token);
    const std::vector<SearchedText> texts{
        {&own, own.repeated_suffix(), Kind::Text},
        {&other, other.longest_suffix(std::span(text).last(20)), Kind::File}};
    const Text never{3};
    const SuffixDraftLimits limits{
        .max_tokens = 20, .max_depth = 4, .min_p = 0.05, .chain = round % 4 == 0, .never = never};
    const LikelyTree<SuffixToken> tree = suffix_tree(known, texts, limits);
    EXPECT_GT(tree.n_nodes(), 0);
    double before = 1;
    std::vector<int> n_children(21);
    for (int i = 0; i < tree.n_nodes(); i++) {
      const SuffixToken& node = tree.node(i);
      EXPECT_EQ(node.place, i);
      EXPECT_LT(node.parent, i);
      EXPECT_NE(node.token, 3);
      const double above = node.parent < 0 ? 1 : tree.node(node.parent).right;
      EXPECT_EQ(node.depth, node.parent < 0 ? 0 : tree.node(node.parent).depth + 1);
      EXPECT_LT(node.depth, 4);
      EXPECT_DOUBLE_EQ(node.right, above * known.right(node.category));
      EXPECT_LE(node.right, before) << "likeliest first";
      EXPECT_GE(node.right, 0.05);
      before = node.right;
      n_children[std::size_t(node.parent + 1)]++;
      const SuffixAutomaton& index = *texts[node.text].index;
      const Text& from = node.text == 0 ? text : more;
      EXPECT_EQ(from[std::size_t(index.newest(node.state))], node.token);
    }
    EXPECT_LE(std::ranges::max(n_children), limits.chain ? 1 : 8);
  }
}

TEST(Suffix, verified_or_not_a_candidates_success_is_counted) {
  SuffixKnowledge known;
  const auto category = [](int length) {
    return SuffixKnowledge::category_of(length, 1, 1, false, Kind::Text);
  };
  std::vector<SuffixToken> candidates(3);
  candidates[0].token = 7, candidates[0].place = 0, candidates[0].category = category(1);
  candidates[1].token = 8, candidates[1].category = category(2);
  candidates[2].token = 9, candidates[2].parent = 0, candidates[2].category = category(3);
  const double right = known.right(category(1)), wrong = known.right(category(2)),
               next = known.right(category(3));
  SizeDecision none{.size = 0, .ms = 1, .plain_ms = 1};
  for (int i = 0; i < 20; i++) known.learn(candidates, Text{7}, none);
  EXPECT_GT(known.right(category(1)), right + 0.3);
  EXPECT_LT(known.right(category(2)), wrong - 0.2);
  EXPECT_NEAR(known.right(category(3)), next, 1e-9) << "its parent was the last known token";
  for (int i = 0; i < 20; i++) known.learn(candidates, Text{7, 9}, none);
  EXPECT_GT(known.right(category(3)), next + 0.2);
}

}  // namespace
}  // namespace engine::test

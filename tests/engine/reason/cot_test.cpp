// Chain of thought on the bundled models: exact and approximate text, and answers that do not depend on
// decoder or batch.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/reason/cot.h"
#include "engine/reason/reveal.h"

namespace engine::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

class Cot : public testing::Test {
 protected:
  static LoadedModel& bundled() {
    static ModelStore store(kAssets, 1);
    return store.get({});
  }
  static const std::vector<Question>& questions() {
    static const std::vector<Question> some = cot_questions("kb", {.count = 8}, "");
    return some;
  }
  static CotReport ask(const CotSettings& settings, int batch = 1) {
    BatchScheduler scheduler(bundled(), batch);
    return answer(scheduler, *bundled().model, questions(), settings);
  }
  static CotSettings with(const std::string& decoder, OptionValues options = {}) {
    CotSettings settings;
    settings.decoder = decoder;
    settings.options = std::move(options);
    return settings;
  }
};

TEST_F(Cot, every_decoder_gives_the_same_whole_rationale) {
  const CotReport ar = ask(with("ar"));
  ASSERT_EQ(ar.items.size(), questions().size());
  EXPECT_GE(ar.n_correct(), 5);
  for (const char* decoder : {"fastcot", "lookahead"}) {
    const CotReport found = ask(with(decoder));
    for (std::size_t i = 0; i < ar.items.size(); i++) {
      EXPECT_EQ(found.items[i].text, ar.items[i].text);
      EXPECT_EQ(found.items[i].answer, ar.items[i].answer);
      EXPECT_EQ(found.items[i].correct, ar.items[i].correct);
      EXPECT_EQ(found.items[i].n_approximate, 0);
      EXPECT_LE(found.items[i].n_steps, ar.items[i].n_steps);
    }
  }
}

TEST_F(Cot, decoders_agree_with_a_repetition_penalty) {
  CotSettings ar = with("ar"), fastcot = with("fastcot");
  ar.sampling.repetition_penalty = fastcot.sampling.repetition_penalty = 1.2f;
  const CotReport expected = ask(ar), found = ask(fastcot);
  ASSERT_EQ(found.items.size(), questions().size());
  for (std::size_t i = 0; i < found.items.size(); i++) {
    EXPECT_EQ(found.items[i].exact, expected.items[i].exact);
    EXPECT_EQ(found.items[i].answer, expected.items[i].answer);
  }
}

TEST_F(Cot, a_repetition_penalty_applies_to_the_answer_too) {
  int n_requested = 0, n_otherwise = 0;
  for (const int t : {6, 18}) {
    CotSettings ar = with("ar"),
                bound = with("fastcot",
                             {{"skip", "false"}, {"stop", "bound"}, {"bound", std::to_string(t)}});
    ar.max_tokens = t;
    bound.keep_approximate = false;
    ar.sampling.repetition_penalty = bound.sampling.repetition_penalty = 1.8f;
    EventList events;
    BatchScheduler scheduler(bundled(), 4);
    const CotReport expected =
        answer(scheduler, *bundled().model, questions(), ar, {.events = &events});
    const CotReport found = ask(bound);
    ar.sampling.repetition_penalty = 1;
    const CotReport without = ask(ar);
    ASSERT_EQ(found.items.size(), questions().size());
    for (std::size_t i = 0; i < found.items.size(); i++) {
      EXPECT_EQ(found.items[i].answer, expected.items[i].answer);
      n_otherwise += expected.items[i].answer != without.items[i].answer;
    }
    for (const Event& event : events.events) {
      const auto* started = std::get_if<RunStarted>(&event);
      if (!started || !started->prompt_id.ends_with("/answer")) continue;
      EXPECT_EQ(started->repetition_penalty, 1.8f);
      n_requested++;
    }
  }
  EXPECT_GT(n_requested, 8);
  EXPECT_GT(n_otherwise, 0) << "the penalty changed no answer";
}

TEST_F(Cot, the_run_names_approximate_tokens_of_its_prompt) {
  BatchScheduler scheduler(bundled(), 4);
  EventList events;
  const CotReport found =
      answer(scheduler, *bundled().model, questions(),
             with("fastcot", {{"stop", "bound"}, {"bound", "10"}}), {.events = &events});
  std::map<std::string, RunStarted> prompts;
  for (const Event& event : events.events)
    if (const auto* started = std::get_if<RunStarted>(&event)) {
      prompts[started->prompt_id] = *started;
      EXPECT_EQ(started->n_approximate > 0,
                started->prompt_id.ends_with("/answer-behind-approximate"));
    }
  int n_after = 0;
  for (const CotItem& item : found.items) {
    const auto at = prompts.find(item.id + "/answer-behind-approximate");
    EXPECT_EQ(at != prompts.end(), item.n_approximate > 0) << item.id;
    if (at == prompts.end()) continue;
    const RunStarted& started = at->second;
    EXPECT_THAT(started.prompt, HasSubstr(item.approximate));
    // The run names the approximate tokens: exact ones precede them, only the trigger follows.
    ASSERT_EQ(started.n_approximate, item.n_approximate);
    const Tokenizer& tokenizer = *bundled().model->tokenizer();
    const auto first = started.prompt_tokens.begin() + started.first_approximate;
    const std::vector<TokenId> exact(started.prompt_tokens.begin(), first);
    const std::vector<TokenId> read(started.prompt_tokens.begin(), first + started.n_approximate);
    EXPECT_EQ(tokenizer.decode(read), tokenizer.decode(exact) + item.approximate);
    EXPECT_THAT(started.prompt, StartsWith(tokenizer.decode(read)));
    EXPECT_EQ(started.prompt_tokens.size() - read.size(), tokenizer.encode(kTrigger, false).size());
    n_after++;
  }
  EXPECT_GT(n_after, 4);
}

TEST_F(Cot, batching_does_not_change_answers) {
  const CotSettings settings = with("fastcot", {{"stop", "bound"}, {"bound", "14"}});
  const CotReport alone = ask(settings), together = ask(settings, 5);
  for (std::size_t i = 0; i < alone.items.size(); i++) {
    EXPECT_EQ(together.items[i].text, alone.items[i].text);
    EXPECT_EQ(together.items[i].n_steps, alone.items[i].n_steps);
  }
}

// Truncated-CoT(t) has the prompts of FastCoT with t iterations and no skip, except for the approximate
// tokens.
TEST_F(Cot, truncated_cot_equals_fastcot_without_guesses) {
  for (const int t : {6, 18}) {
    CotSettings truncated = with("ar");
    truncated.max_tokens = t;
    CotSettings fastcot =
        with("fastcot", {{"skip", "false"}, {"stop", "bound"}, {"bound", std::to_string(t)}});
    const CotReport with_guesses = ask(fastcot);
    fastcot.keep_approximate = false;
    const CotReport expected = ask(truncated), found = ask(fastcot);
    int n_with = 0;
    for (std::size_t i = 0; i < found.items.size(); i++) {
      EXPECT_EQ(found.items[i].exact, expected.items[i].exact);
      EXPECT_EQ(found.items[i].answer, expected.items[i].answer);
      EXPECT_EQ(found.items[i].n_approximate, 0);
      EXPECT_EQ(with_guesses.items[i].exact, expected.items[i].exact);
      n_with += with_guesses.items[i].n_approximate;
    }
    EXPECT_GT(n_with, 10);
  }
}

TEST_F(Cot, approximate_text_is_separate_from_exact_text) {
  const CotReport whole = ask(with("ar"));
  const CotReport found = ask(with("fastcot", {{"stop", "bound"}, {"bound", "10"}}));
  int n_cut = 0;
  for (std::size_t i = 0; i < found.items.size(); i++) {
    const CotItem& item = found.items[i];
    EXPECT_THAT(whole.items[i].exact, StartsWith(item.exact));
    if (item.stop_reason != "bound") continue;
    n_cut++;
    EXPECT_GT(item.n_approximate, 0);
    EXPECT_EQ(item.text, item.exact + item.approximate + kTrigger + item.answer);
    EXPECT_EQ(item.approximate.find('\n'), std::string::npos);
    EXPECT_EQ(item.approximate.find(kTrigger), std::string::npos);
  }
  EXPECT_GT(n_cut, 4);
}

/// A scheduler that replaces the approximate tokens of completions.
class GuessingScheduler : public BatchScheduler {
 public:
  GuessingScheduler(const RunModels& models, std::vector<TokenId> guesses)
      : BatchScheduler(models, 4), guesses_(std::move(guesses)) {}
  std::vector<Completion> run(std::span<const CompletionRequest> requests,
                              const SchedulerWatch& watch) override {
    auto completions = BatchScheduler::run(requests, watch);
    for (Completion& one : completions) one.result.approximate = guesses_;
    return completions;
  }

 private:
  std::vector<TokenId> guesses_;
};

TEST_F(Cot, guesses_end_at_a_line_end_trigger_or_end_token) {
  const Tokenizer& tokenizer = *bundled().model->tokenizer();
  CotSettings settings = with("ar");
  settings.max_tokens = 4;
  const auto used_of = [&](const std::string& text, bool ended) {
    std::vector<TokenId> guesses = tokenizer.encode(text, false);
    if (ended) {
      guesses.push_back(bundled().model->config().eos_ids.front());
      guesses.push_back(guesses.front());
    }
    GuessingScheduler scheduler(bundled(), guesses);
    const std::span<const Question> one(questions().data(), 1);
    return answer(scheduler, *bundled().model, one, settings).items.at(0).approximate;
  };
  EXPECT_EQ(used_of(" they can see. So", false), " they can see. So");
  EXPECT_EQ(used_of(" they can see.\nThe next", false), " they can see.");
  EXPECT_EQ(used_of(" they can see." + std::string(kTrigger) + " (A)", false), " they can see.");
  EXPECT_EQ(used_of(" they can see.", true), " they can see.");
  EXPECT_EQ(used_of("\n", false), "");
}

TEST_F(Cot, a_truncated_answer_is_completed) {
  const CotReport whole = ask(with("ar"));
  int n_inside = 0;  // items
  for (std::size_t i = 0; i < 3; i++) {
    const std::span<const Question> one(&questions()[i], 1);
    for (int cut = whole.items[i].n_tokens - 9; cut < whole.items[i].n_tokens; cut++) {
      BatchScheduler scheduler(bundled(), 1);
      CotSettings truncated = with("ar");
      truncated.max_tokens = cut;
      const CotSettings fastcot =
          with("fastcot", {{"skip", "false"}, {"stop", "bound"}, {"bound", std::to_string(cut)}});
      const CotReport a = answer(scheduler, *bundled().model, one, truncated);
      const CotReport b = answer(scheduler, *bundled().model, one, fastcot);
      ASSERT_EQ(a.items.size(), 1u);
      EXPECT_EQ(a.items[0].exact, b.items[0].exact);
      if (a.items[0].exact != whole.items[i].exact) continue;
      for (const CotItem* item : {&a.items[0], &b.items[0]}) {
        EXPECT_EQ(item->n_approximate > 0, item->approximate != "");
        // The answer has to follow the replaced guesses, not the original ones.
        if (!whole.items[i].text.starts_with(item->exact + item->approximate)) continue;
        n_inside++;
        EXPECT_EQ(item->correct, whole.items[i].correct) << item->text;
        EXPECT_THAT(item->answer, StartsWith(whole.items[i].answer.substr(0, 4))) << item->text;
      }
    }
  }
  EXPECT_GT(n_inside, 15);
}

TEST_F(Cot, a_question_that_exceeds_the_context_is_refused) {
  CotSettings settings = with("ar");
  settings.max_tokens = 100'000;
  try {
    ask(settings);
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), HasSubstr("lower --max-tokens"));
  }
}

TEST_F(Cot, the_probe_ends_a_rationale_and_adds_no_text) {
  const CotReport whole = ask(with("ar"));
  const CotReport found = ask(with("fastcot", {{"stop", "probe"}, {"probe_threshold", "1.2"}}));
  int n_ended = 0;
  for (std::size_t i = 0; i < found.items.size(); i++) {
    n_ended += found.items[i].stop_reason == "probe";
    EXPECT_THAT(whole.items[i].exact, StartsWith(found.items[i].exact));
  }
  EXPECT_GT(n_ended, 0);
}

TEST_F(Cot, the_context_limits_the_number_of_examples) {
  CotSettings settings = with("ar");
  settings.exemplars = read_exemplars(kAssets + "/prompts/cot/commonsenseqa.jsonl");
  const int n = shots_that_fit(*bundled().model, settings, questions());
  EXPECT_GT(n, 1);
  settings.max_tokens = 700;
  EXPECT_LT(shots_that_fit(*bundled().model, settings, questions()), n);
  settings.max_tokens = 20;
  settings.n_shots = 1;
  BatchScheduler scheduler(bundled(), 4);
  EventList events;
  const CotReport found =
      answer(scheduler, *bundled().model, questions(), settings, {.events = &events});
  EXPECT_EQ(found.n_shots, 1);
  int n_prompts = 0;
  for (const Event& event : events.events) {
    const auto* started = std::get_if<RunStarted>(&event);
    if (!started) continue;
    EXPECT_THAT(started->prompt, HasSubstr(settings.exemplars[0].question));
    n_prompts++;
  }
  EXPECT_GE(n_prompts, static_cast<int>(questions().size()));
}

TEST_F(Cot, the_bound_is_the_smallest_within_the_tolerance) {
  BatchScheduler scheduler(bundled(), 8);
  std::vector<int> tried;
  const auto on_trial = [&](const BoundTrial& trial) {
    tried.push_back(trial.bound);
    return true;
  };
  const BoundSearch any =
      find_bound(scheduler, *bundled().model, questions(), with("fastcot"), 1.0, on_trial);
  EXPECT_EQ(any.bound, 1);  // with tolerance 1 every bound is accepted
  EXPECT_EQ(tried, (std::vector<int>{0, 2, 1}));
  const BoundSearch none =
      find_bound(scheduler, *bundled().model, questions(), with("fastcot"), 0.0, {});
  ASSERT_GT(none.bound, 1) << "the smallest bound is accepted, so there is no search";
  bool below = false;
  for (const BoundTrial& trial : none.trials) {
    if (trial.bound == 0) continue;
    EXPECT_EQ(trial.accuracy >= none.trials[0].accuracy, trial.bound >= none.bound) << trial.bound;
    below |= trial.bound == none.bound - 1;
  }
  EXPECT_TRUE(below);
}

TEST_F(Cot, the_parts_of_the_time_add_up) {
  const CotReport report = ask(with("fastcot", {{"window", "4"}}), 4);
  const StepTimes times = report.times();
  for (const std::int64_t part :
       {times.propose, times.forward, times.choice, times.verify, times.commit})
    EXPECT_GT(part, 0);
  EXPECT_GT(times.forward, times.choice);
  const std::int64_t steps =
      times.propose + times.forward + times.choice + times.verify + times.commit;
  EXPECT_GT(report.prefill_seconds(), 0);
  EXPECT_NEAR(report.prefill_seconds() + static_cast<double>(steps) * 1e-9, report.seconds(), 1e-6);
}

TEST_F(Cot, the_reveal_curve_is_that_of_single_runs) {
  BatchScheduler scheduler(bundled(), 8);
  const std::vector<int> limits = {12, 40};
  const auto curve = reveal_curve(scheduler, *bundled().model, questions(),
                                  with("fastcot", {{"window", "6"}}), limits);
  ASSERT_EQ(curve.size(), 3u);
  for (std::size_t i = 0; i < 2; i++) {
    const std::string bound = std::to_string(limits[i]);
    CotSettings cut = with("ar");
    cut.max_tokens = limits[i];
    const CotReport truncated = ask(cut);
    const CotReport fastcot =
        ask(with("fastcot", {{"window", "6"}, {"stop", "bound"}, {"bound", bound}}));
    EXPECT_EQ(curve[i].limit, limits[i]);
    EXPECT_EQ(curve[i].truncated.n_correct, truncated.n_correct());
    EXPECT_EQ(curve[i].fastcot.n_correct, fastcot.n_correct());
    EXPECT_EQ(curve[i].truncated.n_approximate, 0);
    EXPECT_GT(curve[i].fastcot.n_approximate, 0);
    EXPECT_LE(curve[i].truncated.n_rows, limits[i] * std::ssize(questions()));
    EXPECT_GT(curve[i].fastcot.n_rows, curve[i].truncated.n_rows);
  }
  EXPECT_EQ(curve[2].limit, 0);
  EXPECT_EQ(curve[2].truncated.n_correct, ask(with("ar")).n_correct());
  EXPECT_EQ(curve[2].fastcot.n_correct, curve[2].truncated.n_correct) << "exact rationales";
  const auto first = reveal_curve(scheduler, *bundled().model, questions(), with("fastcot"), limits,
                                  [](const RevealPoint&) { return false; });
  EXPECT_EQ(first.size(), 1u);
}

TEST_F(Cot, a_stopped_report_is_incomplete) {
  BatchScheduler scheduler(bundled(), 2);
  int n_requested = 0;
  SchedulerWatch watch;
  watch.stop = [&] { return ++n_requested > 20; };
  const CotReport report = answer(scheduler, *bundled().model, questions(), with("fastcot"), watch);
  EXPECT_FALSE(report.complete);
  EXPECT_LT(report.items.size(), questions().size());
  for (const CotItem& item : report.items) EXPECT_FALSE(item.answer.empty()) << item.text;
}

}  // namespace
}  // namespace engine::test

// Values of states: the score and its distribution, the likelihood of a thought, states with known truth.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/arith/answers.h"
#include "engine/reason/known_states.h"
#include "engine/reason/state_value.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

const std::string kAssets = std::string(DECOSCOPE_SOURCE_DIR) + "/assets";

RunModels models() {
  static ModelStore store(kAssets, 1);
  return RunModels(store.get({}));
}
Model& model() {
  return *models().target.model;
}

std::vector<TokenId> tokens_of(const std::string& text) {
  return model().tokenizer()->encode(text, TextReading{.symbols = true});
}

/// The log probability of the tokens of `text` from the n-th on: one forward per token over the whole text.
double slow_logp(const std::vector<TokenId>& text, std::size_t n) {
  double sum = 0;
  for (; n < text.size(); n++) {
    const auto cache = model().make_cache();
    TokenTree tree;
    for (std::size_t i = 0; i < n; i++) tree.add(text[i], static_cast<int>(i) - 1, RowTag{});
    const BatchItem item{.cache = cache.get(), .tree = &tree};
    const auto out = model().forward(std::span(&item, 1), Wants{.logits = true});
    const auto logits = out[0].logits_of(static_cast<int>(n) - 1);
    double exps = 0;
    for (const float z : logits) exps += std::exp(static_cast<double>(z));
    sum += static_cast<double>(logits[static_cast<std::size_t>(text[n])]) - std::log(exps);
  }
  return sum;
}

/// The sequence of a prompt and its continuation without keys and values.
Sequence sequence_of(const std::string& text) {
  return {tokens_of(text), model().make_cache()};
}

const std::string kBefore = "Question: Anna has 5 pens. She buys 7 more. How many?\nStep 1: ";
const std::string kStep = "She has 5+7=<<5+7=12>>12 pens.";

EvaluationPrompt prompt() {
  return {kBefore + kStep + "\nEvaluation:", kBefore.size(), kBefore.size() + kStep.size()};
}

std::optional<double> valued(ValueSource source,
                             const EvaluationPrompt& prompt,
                             const std::string& text) {
  const Sequence end = sequence_of(prompt.text + text);
  return state_value(source, model(), *model().tokenizer(), {prompt, end, text, {.symbols = true}});
}

TEST(StateValue, written_is_the_score_of_the_text) {
  EXPECT_EQ(valued(ValueSource::Written, prompt(), " Score: 7\nFine."), 7);
  EXPECT_FALSE(valued(ValueSource::Written, prompt(), " Fine."));
}

TEST(StateValue, a_score_after_its_explanation_is_the_last_one) {
  EvaluationPrompt asked = prompt();
  const std::string text = " A score of 10 needs 4 ends. Thus the coherency score is 6";
  EXPECT_EQ(valued(ValueSource::Written, asked, text), 10);
  asked.score = ScorePlace::Last;
  EXPECT_EQ(valued(ValueSource::Written, asked, text), 6);
  EXPECT_FALSE(valued(ValueSource::Written, asked, "1. There is a slip."));
  // The mean over the scores that may follow the same text.
  const auto expected = valued(ValueSource::Expected, asked, text);
  ASSERT_TRUE(expected);
  const std::string other = " A score of 10 needs 4 ends. Thus the coherency score is 2";
  EXPECT_EQ(valued(ValueSource::Expected, asked, other), expected);
  asked.score = ScorePlace::First;
  EXPECT_NE(valued(ValueSource::Expected, asked, text), expected);
  TotPrompt concluding;
  concluding.text = "{plan}";
  concluding.score = ScorePlace::Last;
  EXPECT_EQ(evaluation_prompt(concluding, {{"plan", "a"}}, {{"plan", "a"}}).score,
            ScorePlace::Last);
}

TEST(StateValue, expected_is_the_mean_over_the_scores) {
  double sum = 0, weighted = 0;
  for (int score = 1; score <= 10; score++) {
    const auto text = tokens_of(prompt().text + " Score: " + std::to_string(score));
    double p = std::exp(slow_logp(text, text.size() - (score == 10 ? 2 : 1)));
    const auto ten = tokens_of(prompt().text + " Score: 10");
    if (score == 1) p -= std::exp(slow_logp(ten, ten.size() - 2));
    sum += p, weighted += p * score;
  }
  const EvaluationPrompt asked = prompt();
  const auto value = valued(ValueSource::Expected, asked, " Score: 3\nThere is a slip.");
  ASSERT_TRUE(value);
  EXPECT_NEAR(*value, weighted / sum, 1e-4);
  // The score that was written does not matter, only the text before it.
  EXPECT_EQ(valued(ValueSource::Expected, asked, " Score: 9\nThe sum is right."), value);
  EXPECT_FALSE(valued(ValueSource::Expected, asked, " There is a slip."));
}

TEST(StateValue, likelihood_is_that_of_the_thought) {
  const auto text = tokens_of(kBefore + kStep), before = tokens_of(kBefore);
  std::size_t n = 0;
  while (n < before.size() && before[n] == text[n]) n++;
  const double mean = slow_logp(text, n) / static_cast<double>(text.size() - n);
  const auto value = valued(ValueSource::Likelihood, prompt(), "");
  ASSERT_TRUE(value);
  EXPECT_NEAR(*value, 10 * std::exp(mean), 1e-4);
  EvaluationPrompt none = prompt();
  none.thought_end = none.thought_begin;
  EXPECT_FALSE(valued(ValueSource::Likelihood, none, ""));
}

TEST(StateValue, cached_keys_do_not_change_a_value) {
  const std::string text = " Score: 8\nThe sum is right.";
  const EvaluationPrompt asked = prompt();
  Sequence cached = sequence_of(asked.text + text);
  prefill(model(), cached);
  for (const ValueSource source : {ValueSource::Expected, ValueSource::Likelihood})
    EXPECT_EQ(state_value(source, model(), *model().tokenizer(),
                          {asked, cached, text, {.symbols = true}}),
              valued(source, asked, text));
}

TEST(StateValue, the_thought_is_found_in_the_template) {
  TotPrompt prompt;
  prompt.text = "{goal}: {action}, again {action}\nScore:";
  const Slots thought = {{"action", "stack it"}};
  Slots slots = thought;
  slots["goal"] = "a tower";
  const EvaluationPrompt filled = evaluation_prompt(prompt, slots, thought);
  EXPECT_EQ(filled.text, "a tower: stack it, again stack it\nScore:");
  EXPECT_EQ(filled.thought_begin, 25u);
  EXPECT_EQ(filled.thought_end, 33u);
  const EvaluationPrompt none = evaluation_prompt(prompt, slots, {});
  EXPECT_EQ(none.thought_begin, none.thought_end);
}

TEST(StateValue, names_are_read_and_others_refused) {
  for (const std::string& name : value_source_names()) EXPECT_EQ(name_of(value_source(name)), name);
  try {
    value_source("votes");
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_THAT(error.what(), HasSubstr("written, expected, likelihood"));
  }
}

TEST(KnownStates, area_is_the_share_of_ordered_pairs) {
  const auto area = [](std::vector<double> good, std::vector<double> bad) {
    return area_under_curve(good, bad);
  };
  EXPECT_EQ(area({3, 4}, {1, 2}), 1);
  EXPECT_EQ(area({1}, {2, 3}), 0);
  EXPECT_EQ(area({10, 10}, {10}), 0.5);
  EXPECT_EQ(area({5, 1}, {3, 1}), (1 + 1 + 0 + 0.5) / 4);
  EXPECT_FALSE(area({}, {1}));
  EXPECT_FALSE(area({1}, {}));
}

std::string prompt_of(const KnownState& state, const std::string& file) {
  const auto prompts = read_tot_prompts(kAssets + "/prompts/tot/" + file);
  const auto asked =
      prompts_for(prompts, TotPrompt::Use::Value, static_cast<int>(state.chain.size()));
  Slots slots = tot_task(state.question.task)
                    .slots(state.question, {state.chain.begin(), state.chain.end() - 1});
  for (const auto& [part, text] : state.chain.back()) slots[part] = text;
  return evaluation_prompt(*asked.front(), slots, state.chain.back()).text;
}

TEST(KnownStates, sums_are_those_of_the_records) {
  int n_good = 0, n_wrong_marks = 0;
  for (const KnownState& state : known_states("arith", {.level = 2, .count = 60})) {
    const std::string step = state.chain.back().at("answer");
    n_good += state.good;
    if (state.good) {
      EXPECT_EQ(wrong_mark(step), "") << step;
    }
    n_wrong_marks += !wrong_mark(step).empty();
    const auto record = task_generator("arith").make(
        Split::Test, 2, std::stoll(state.question.id.substr(state.question.id.rfind('/') + 1)));
    ASSERT_TRUE(record);
    EXPECT_EQ(prompt_of(state, "arith.jsonl"), record->prompt);
  }
  EXPECT_GT(n_good, 10);
  EXPECT_LT(n_good, 50);
  EXPECT_GT(n_wrong_marks, 3);
}

TEST(KnownStates, a_good_action_brings_the_goal_nearer) {
  int n_good = 0;
  for (const KnownState& state : known_states("blocks", {.level = 2, .count = 60})) {
    Record asked = state.question;
    const auto at = asked.check.find("\"evaluation\"");
    ASSERT_NE(at, std::string::npos);
    asked.check.replace(at, 12, "\"action\"");
    const std::string action = state.chain.back().at("action");
    EXPECT_EQ(task_generator("blocks").check(asked, action).correct, state.good) << action;
    n_good += state.good;
  }
  EXPECT_GT(n_good, 10);
  EXPECT_LT(n_good, 50);
}

TEST(KnownStates, plans_and_passages_are_those_of_the_records) {
  int n_good = 0, n_plans = 0;
  for (const KnownState& state : known_states("write", {.level = 1, .count = 60})) {
    n_good += state.good;
    n_plans += state.chain.back().contains("plan");
    const auto record = task_generator("write").make(
        Split::Test, 1, std::stoll(state.question.id.substr(state.question.id.rfind('/') + 1)));
    ASSERT_TRUE(record);
    EXPECT_EQ(prompt_of(state, "writing.jsonl"), record->prompt);
    EXPECT_EQ(state.good, std::stoi(record->answer) >= 8);
  }
  EXPECT_GT(n_plans, 5);
  EXPECT_LT(n_plans, 55);
  EXPECT_GT(n_good, 10);
  EXPECT_LT(n_good, 60);
}

TEST(KnownStates, evaluations_are_those_of_single_runs) {
  const auto states = known_states("arith", {.level = 1, .count = 6});
  TotSettings settings;
  settings.prompts = read_tot_prompts(kAssets + "/prompts/tot/arith.jsonl");
  BatchScheduler one(models(), 1), four(models(), 4);
  const auto alone = evaluate_states(one, model(), states, settings);
  const auto together = evaluate_states(four, model(), states, settings);
  ASSERT_EQ(alone.size(), 6u);
  ASSERT_EQ(together.size(), 6u);
  for (std::size_t i = 0; i < alone.size(); i++) {
    EXPECT_EQ(alone[i].id, states[i].question.id);
    EXPECT_EQ(alone[i].text, together[i].text);
    EXPECT_EQ(alone[i].written, together[i].written);
    EXPECT_EQ(alone[i].expected, together[i].expected);
    EXPECT_EQ(alone[i].likelihood, together[i].likelihood);
    EXPECT_TRUE(alone[i].likelihood);
  }
  try {
    known_states("kb", {});
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
  }
}

}  // namespace
}  // namespace engine::test

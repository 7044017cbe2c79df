// Questions of chain of thought, their options, and the few-shot examples.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/arith/answers.h"
#include "engine/data/readers.h"
#include "engine/reason/cot_prompts.h"
#include "engine/reason/cot_task.h"
#include "tests/support/data_folder.h"

namespace engine::test {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;

const std::string kPrompts = std::string(DECOSCOPE_SOURCE_DIR) + "/assets/prompts/cot/";

TEST(CotPrompts, bundled_examples_have_right_answers) {
  const std::pair<const char*, std::size_t> files[] = {
      {"commonsenseqa", 7}, {"strategyqa", 6}, {"aqua", 4}};
  for (const auto& [task, n] : files) {
    const auto exemplars = read_exemplars(kPrompts + task + ".jsonl");
    ASSERT_EQ(exemplars.size(), n) << task;
    for (const Exemplar& one : exemplars) {
      EXPECT_THAT(one.question, EndsWith("\nA:"));
      EXPECT_THAT(one.rationale, EndsWith("."));
      Record record;
      record.task = task;
      const bool letter = one.answer[0] == '(';
      record.answer = letter ? one.answer.substr(1, 1) : one.answer;
      record.check = letter ? R"({"form": "letter"})" : R"({"form": "yes/no"})";
      const std::string text = few_shot_text(std::span(&one, 1));
      EXPECT_TRUE(check_record(record, text.substr(one.question.size())).correct) << text;
    }
  }
}

TEST(CotPrompts, have_the_format_of_active_prompt) {
  const Exemplar one{"Q: Is it?\nA:", "It is.", "yes"};
  EXPECT_EQ(few_shot_text(std::vector{one, one}),
            "Q: Is it?\nA: It is. So the answer is yes.\n\n"
            "Q: Is it?\nA: It is. So the answer is yes.\n\n");
}

TEST(CotPrompts, a_rationale_ends_before_the_trigger) {
  EXPECT_EQ(rationale_of(" It is. So the answer is yes."), " It is.");
  EXPECT_EQ(rationale_of(" It is."), " It is.");
}

TEST(CotTask, a_sample_is_uniform_and_depends_on_its_seed) {
  std::vector<Question> all(40);
  for (std::size_t i = 0; i < all.size(); i++) all[i].record.id = std::to_string(i);
  std::vector<int> n_drawn(all.size());
  const auto ids_of = [](const std::vector<Question>& questions) {
    std::vector<int> ids;
    for (const Question& question : questions) ids.push_back(std::stoi(question.record.id));
    return ids;
  };
  for (std::uint64_t seed = 0; seed < 400; seed++) {
    const std::vector<int> ids = ids_of(sample_of(all, 10, seed));
    ASSERT_EQ(ids.size(), 10u);
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end()) << "one question twice";
    EXPECT_EQ(ids, ids_of(sample_of(all, 10, seed)));
    for (const int id : ids) n_drawn[static_cast<std::size_t>(id)]++;
  }
  // Expects a hundred each, within five standard deviations.
  for (const int n : n_drawn) EXPECT_NEAR(n, 100, 44);
  EXPECT_EQ(ids_of(sample_of(all, 40, 3)), ids_of(all));
  EXPECT_EQ(ids_of(sample_of(all, 50, 3)), ids_of(all));
}

TEST(CotTask, questions_have_options_or_the_answer_yes_or_no) {
  for (const char* task : {"kb", "arith"}) {
    const auto questions = cot_questions(task, {.count = 30}, "");
    ASSERT_EQ(questions.size(), 30u);
    for (const Question& question : questions) {
      if (question.record.answer == "yes" || question.record.answer == "no") {
        EXPECT_EQ(question.answers, (std::vector<std::string>{" yes", " no"}));
        continue;
      }
      EXPECT_THAT(question.record.prompt, HasSubstr("Answer Choices:"));
      EXPECT_EQ(question.answers.size(), 10u) << question.record.prompt;
      EXPECT_THAT(question.answers, Contains(" (" + question.record.answer + ")"));
    }
  }
}

TEST(CotTask, options_are_read_in_both_notations) {
  Record record;
  record.task = "aqua";
  record.answer = "B";
  record.check = R"({"form": "letter"})";
  for (const char* prompt : {"Q: Which? Answer Choices: (A) red box (B) 17\nA:",
                             "USER: Which? Answer Choices: red box (A), 17 (B) ASSISTANT:"}) {
    record.prompt = prompt;
    const auto questions = cot_questions_of(std::vector{record});
    ASSERT_EQ(questions.size(), 1u);
    EXPECT_THAT(questions[0].answers, Contains(" red box"));
    EXPECT_THAT(questions[0].answers, Contains(" 17"));
    EXPECT_EQ(questions[0].answers.size(), 7u) << prompt;
  }
}

TEST(CotTask, a_letter_counts_only_alone_and_after_the_trigger) {
  const std::pair<const char*, const char*> cases[] = {
      {"the answer is (B).", "B"},
      {"the answer is B.", "B"},
      {"the answer is B", "B"},
      {"the answer is: B", "B"},
      {"the answer is (b).", ""},               // options are capital letters
      {"the answer is Because of (C).", "C"},   // the first letter of a word is no option
      {"the answer is Because.", ""},           // a word is no option
      {"the answer is CD (E)", "E"},            // two letters are a word
      {"the answer is B2 or 2B (A)", "A"},      // so are a letter and a digit
      {"the answer is the red box (D).", "D"},  // text before the parenthesis
      {"the answer is (A) or (B).", "A"},       // the first of several
      {"the answer is (F).", ""},               // no option
      {"(A) it says, but the answer is", ""},   // before the trigger
      {"the answer is (A). No: the answer is (B).", "B"},  // the last trigger
      {"I choose (A)", ""},
      {"", ""}};
  for (const auto& [text, letter] : cases) {
    const auto found = chosen_letter(text);
    EXPECT_EQ(found ? std::string(1, *found) : "", letter) << text;
  }
}

TEST(CotTask, an_answer_ends_at_its_first_full_stop) {
  Record record;
  record.task = "aqua";
  record.answer = "B";
  record.check = R"({"form": "letter"})";
  const Question letter{record, {}};
  record.task = "strategyqa";
  record.answer = "no";
  record.check = R"({"form": "yes/no"})";
  const Question word{record, {}};
  const std::tuple<const Question&, const char*, bool> cases[] = {
      {letter, " (B).", true},
      {letter, " B.", true},
      {letter, " (b).", false},
      {letter, " Because. (B)", false},  // ignores text after the full stop
      {letter, " (A). (B)", false},
      {letter, " (B). (A)", true},
      {letter, " 17 (B", true},  // truncated by the token limit of answers
      {letter, " 17.5 (B).", true},
      {letter, " 17. 5 (B).", false},
      {letter, ".(B)", false},
      {letter, "", false},
      {letter, "42", false},  // no full stop, and a digit first
      {letter, "17.5", false},
      {word, " no.", true},
      {word, " no. yes", true},
      {word, " yes. no", false},
      {word, " nobody.", false},
      {word, ". no", false}};
  for (const auto& [question, text, right] : cases)
    EXPECT_EQ(is_right_answer(question.record, text), right) << text;
}

TEST(CotTask, a_later_start_gives_the_following_questions) {
  const auto all = cot_questions("kb", {.count = 8}, "");
  const auto last = all.back().record.id;
  const auto index = std::stoll(last.substr(last.rfind('/') + 1));
  const auto next = cot_questions("kb", {.start = index, .count = 1}, "");
  EXPECT_EQ(next[0].record.prompt, all.back().record.prompt);
}

TEST(CotTask, unusable_input_is_refused_with_the_reason) {
  try {
    cot_questions("strategyq", {}, "");
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_THAT(error.what(), HasSubstr("strategyqa"));
  }
  Record record;
  record.check = R"({"form": "gsm8k"})";
  EXPECT_THROW(cot_questions_of(std::vector{record}), Error);
}

TEST(CotTask, reads_the_open_sets) {
  const std::string data = data_folder();
  if (data.empty()) GTEST_SKIP() << kNoDataFolder;
  for (const char* task : {"commonsenseqa", "strategyqa", "aqua"}) {
    const auto questions = cot_questions(task, {.start = 3, .count = 4}, data);
    ASSERT_EQ(questions.size(), 4u) << task;
    EXPECT_FALSE(questions[0].answers.empty());
    EXPECT_THAT(questions[0].record.prompt, EndsWith("\nA:"));
  }
}

}  // namespace
}  // namespace engine::test

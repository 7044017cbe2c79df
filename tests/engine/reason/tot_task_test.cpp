// Parsing of completions, slots of prompts, and checks of answers.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/arith/answers.h"
#include "engine/data/text.h"
#include "engine/reason/tot_task.h"
#include "tests/support/data_folder.h"

namespace engine::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kPrompts = std::string(DECOSCOPE_SOURCE_DIR) + "/assets/prompts/tot/";

std::string refusal(const std::function<void()>& what, ErrorCode code) {
  try {
    what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected a refusal";
  return "";
}

TEST(Score, is_the_number_of_an_evaluation) {
  const std::pair<const char*, double> cases[] = {
      {" Score: 9\nThe sum is right.", 9},
      {"Score: 10", 10},
      {"Score: 0", 0},
      {"score 7.5.", 7.5},
      {"Score:8/10", 8},
      {"I give it a score of 8 out of 10.", 8},
      {"On a scale from 1 to 10 the score is 4", 4},
      {"Score (1-10): 6", 6},
      {"Score from 1 to 10: 3", 3},
      {"Score, 1 \u2013 10: 2", 2},
      {"**Score:** 5", 5},
      {"Score:\n8\nbecause of 3 reasons", 8},
      {"SCORE: 1. There is a slip.", 1},
      {" 7.", 7},
      {"7 of 10", 7},
      {"Step 3 deserves the score 9, not 2", 9},
  };
  for (const auto& [text, expected] : cases) {
    const auto found = read_score(text);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, expected) << text;
  }
}

TEST(Score, is_missing_without_a_number_from_0_to_10) {
  for (const char* text :
       {"", " ", "Score:", "Score: good", "Score: eleven", "Score: 11", "Score: 95", "Score: -3",
        "The sum 3+4 is right.", "Score: good\nThe sum is 7.", "Score: A8", "Good, 8",
        "Score: 99999999999999999999999999"})
    EXPECT_FALSE(read_score(text)) << text;
}

TEST(Score, a_conclusion_is_read_from_the_end) {
  const std::pair<const char*, double> cases[] = {
      {" Line 1 fits, lines 2 and 3 do not.\nThus the coherency score is 6", 6},
      {"A score of 10 needs all 4 ends; 2 are missing.\nThus the coherency score is 4.", 4},
      {"Thus the coherency score is 8. Line 2: another subject, not 1 of the 4.", 8},
      {"Thus the coherency score is 8.\nThe score is good.", 8},
      {"The score could be 7, but 2 ends are wrong: the score is 3 out of 10", 3},
      {"He scored 9 points. Thus the coherency score is 2", 2},
      {"On a scale from 1 to 10 the score is 5", 5},
      {"The score from 1 to 10 is 7.5!", 7.5},
      {"Thus the coherency score is 9\nOf 10 pages, 3 are empty.", 9},
      {"**Coherency score:** 10", 10},
      {"score 1", 1},
      {"Score:\n0", 0},
  };
  for (const auto& [text, expected] : cases) {
    const auto found = find_score(text, ScorePlace::Last);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->value, expected) << text;
    EXPECT_EQ(std::strtod(text + found->begin, nullptr), expected) << text;
  }
}

TEST(Score, a_conclusion_without_a_number_from_0_to_10_is_missing) {
  for (const char* text :
       {"", "7", "1. The passage is short.\n2. It ends well.", "Paragraphs 1 to 4 end well.",
        "Thus the coherency score is", "Thus the coherency score is 15",
        "The score is 4.\nThus the coherency score is -3",
        "The score is low, for 2 lines are wrong.", "The score is from 1 to 10.",
        "He scored 3 goals.", "The scoreboard shows 3."})
    EXPECT_FALSE(read_score(text, ScorePlace::Last)) << text;
}

TEST(Score, must_exceed_five_exactly_for_right_steps) {
  EXPECT_TRUE(check_score("Score: 8\nThe sum is right.", true).correct);
  EXPECT_FALSE(check_score("Score: 8", false).correct);
  EXPECT_TRUE(check_score("Score: 5", false).correct);
  EXPECT_FALSE(check_score("Score: 0", false).correct);
  EXPECT_FALSE(check_score("good", true).correct);
}

TEST(FinalNumber, is_the_last_one_if_it_is_whole) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {" The answer is 18.", 18}, {"We get 1,200.", 1200},     {"$18.00", 18},
      {"It is -4", -4},           {"Anna: 3. Bella: 5", 5},    {"18 dollars", 18},
      {"7.50 and then 8", 8},     {"1,2 and 3 make 6.000", 6},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(last_number(text, ""), expected) << text;
  for (const char* text : {"", "none", "18.5", "It costs 2.25 dollars", "12 boxes of 1.5"})
    EXPECT_FALSE(last_number(text, "")) << text;
}

TEST(TotPrompts, slots_of_bundled_prompts_are_all_known) {
  for (const TotTaskInfo& info : tot_tasks()) {
    Record record;
    record.task = info.name;
    record.prompt = "Question:\nHow many?\nAnswer:\n";
    record.check = R"({"form": "plan", "init": ["clear red", "handempty", "ontable red"],
                       "goal": ["on red blue"]})";
    const auto prompts = read_tot_prompts(kPrompts + info.prompts);
    Thought written;
    for (const TotPrompt& prompt : prompts) {
      Slots slots = tot_task(info.name).slots(record, {});
      slots.insert(written.begin(), written.end());
      const std::string text = fill_template(prompt.text, slots);
      EXPECT_EQ(text.find('{'), std::string::npos) << text;
      if (!prompt.part.empty()) written[prompt.part] = "words";
    }
  }
}

// SEED's evaluators write a score and an explanation, 128 tokens at most. An explanation that comes before the score
// may have several paragraphs.
TEST(TotPrompts, evaluations_have_room_for_an_explanation) {
  for (const TotTaskInfo& info : tot_tasks()) {
    int n = 0;
    for (const TotPrompt& prompt : read_tot_prompts(kPrompts + info.prompts)) {
      if (prompt.use != TotPrompt::Use::Value) continue;
      EXPECT_EQ(prompt.max_tokens, 128) << info.name;
      const bool concludes = info.name == "creative_writing";
      EXPECT_EQ(prompt.score, concludes ? ScorePlace::Last : ScorePlace::First) << info.name;
      EXPECT_EQ(prompt.stop_texts, std::vector<std::string>{concludes ? "\nTask:" : "\n\n"})
          << info.name;
      n++;
    }
    EXPECT_GT(n, 0) << info.name;
  }
}

// The worked evaluations of these prompts are read like those of a model.
TEST(TotPrompts, examples_of_writing_explain_and_then_score) {
  const auto prompts = read_tot_prompts(kPrompts + tot_task_info("creative_writing").prompts);
  const auto generated = read_tot_prompts(kPrompts + tot_task_info("write").prompts);
  ASSERT_EQ(prompts.size(), generated.size());
  const std::string analysis = "Analysis:";
  int n_examples = 0;
  for (std::size_t i = 0; i < prompts.size(); i++) {
    const std::string& text = prompts[i].text;
    if (prompts[i].use == TotPrompt::Use::Thought) {
      EXPECT_EQ(text, generated[i].text);
      continue;
    }
    EXPECT_TRUE(text.ends_with(analysis)) << text;
    std::set<double> scores;
    for (std::size_t at = text.find(analysis), end = 0;
         (end = text.find("\nTask:", at)) != std::string::npos; at = text.find(analysis, end)) {
      const std::string example = text.substr(at + analysis.size(), end - at - analysis.size());
      const auto score = find_score(example, ScorePlace::Last);
      ASSERT_TRUE(score) << example;
      EXPECT_GT(score->begin, example.size() - 8) << "the score is at the end: " << example;
      scores.insert(score->value);
      n_examples++;
    }
    EXPECT_EQ(scores.size(), 2u) << "examples have different scores";
  }
  EXPECT_EQ(n_examples, 4);
}

TEST(TotPrompts, a_capital_slot_gives_a_capital_letter) {
  const Slots slots = {{"action", "pick it up"}, {"i", "3"}};
  EXPECT_EQ(fill_template("{i}: {Action}. {action} {} {1} {", slots),
            "3: Pick it up. pick it up {} {1} {");
  EXPECT_EQ(fill_template("{action}", {{"action", "{i}"}, {"i", "3"}}), "{i}");  // filled once
  const std::string said =
      refusal([&] { fill_template("a {nobody}", slots); }, ErrorCode::BadInput);
  EXPECT_THAT(said, HasSubstr("{nobody}"));
  EXPECT_THAT(said, HasSubstr("{action}"));
}

TEST(TotPrompts, bad_prompts_are_refused_with_file_and_reason) {
  const std::string path = testing::TempDir() + "/tot_prompts.jsonl";
  const auto said = [&](const std::string& text) {
    std::ofstream(path) << text;
    return refusal([&] { read_tot_prompts(path); }, ErrorCode::BadInput);
  };
  EXPECT_THAT(said(R"({"use": "dream", "prompt": "a", "max_tokens": 3})"), HasSubstr("'dream'"));
  EXPECT_THAT(said(R"({"use": "thought", "prompt": "a", "max_tokens": 3})"), HasSubstr("part"));
  EXPECT_THAT(said(R"({"use": "value", "prompt": "a", "max_tokens": 3})"),
              HasSubstr("no line with use \"thought\""));
  EXPECT_THAT(said(R"({"use": "thought", "part": "a", "prompt": "a", "max_tokens": 0})"),
              HasSubstr("max_tokens"));
  EXPECT_THAT(said(R"({"use": "value", "prompt": "a", "max_tokens": 3, "score": "middle"})"),
              HasSubstr("'middle', expected first or last"));
  EXPECT_THAT(said("{}\n"), HasSubstr(":1: "));
  EXPECT_THAT(refusal([] { read_tot_prompts("no/such/file"); }, ErrorCode::BadInput),
              HasSubstr("no/such/file"));
}

TEST(TotTask, sums_end_when_a_thought_asks_nothing_new) {
  const TotTask& task = tot_task("arith");
  const Record record;
  const Thought first = {{"question", "How many cards does Anna have after getting 16 more?"},
                         {"answer", "That makes 4+16=<<4+16=20>>20 cards."}};
  const auto complete = [&](const char* question) {
    const Thought asked = {{"question", question}};
    EXPECT_FALSE(task.is_complete(record, {first, asked})) << "it has no answer yet";
    return task.is_complete(record, {first, {{"question", question}, {"answer", "20 cards."}}});
  };
  EXPECT_TRUE(complete("What is the final answer?"));
  EXPECT_TRUE(complete("After getting 16 more, how many cards are there for Anna?"));
  EXPECT_TRUE(complete("What is the number of cards that Anna has after getting 16 more?"));
  EXPECT_FALSE(complete("How many cards does Anna have after getting 15 more?"));
  EXPECT_FALSE(complete("How many cards does Bella have after getting 16 more?"));
  EXPECT_FALSE(complete("How many cards does Anna have when 16 are gone?"));
  EXPECT_FALSE(task.is_complete(record, {first}));
  EXPECT_FALSE(task.is_complete(record, {}));
}

TEST(TotTask, the_answer_of_a_sum_leaves_a_repeat_out) {
  const TotTask& task = tot_task("arith");
  Record record;
  record.prompt = "Question:\nHow many?\nAnswer:\n";
  const Thought first = {{"question", "How many cards?"}, {"answer", "4 cards."}};
  const Thought again = {{"question", "How many are the cards?"}, {"answer", "5 cards."}};
  const Slots slots = task.slots(record, {first, again});
  EXPECT_EQ(slots.at("history"), "Sub-question 1: How many cards?\nAnswer 1: 4 cards.\n");
  EXPECT_EQ(slots.at("steps"), "Step 1: 4 cards.\n");
  EXPECT_EQ(slots.at("i"), "2");
}

TEST(TotTask, a_question_is_the_same_in_every_form_of_its_record) {
  Record record;
  record.task = "arith";
  record.prompt = "Question:\nHow many?\nAnswer:\nLet's think step by step.\n";
  EXPECT_EQ(tot_task("arith").question(record), "How many?");
  record.prompt = "USER: How many? ASSISTANT:";
  EXPECT_EQ(tot_task("arith").question(record), "How many?");
}

TEST(TotTask, sums_are_checked_by_the_number_of_the_answer) {
  Record record;
  record.id = "q";
  record.task = "arith";
  record.check = R"({"form": "gsm8k", "answer": 20})";
  const TotTask& task = tot_task("arith");
  EXPECT_TRUE(task.check(record, {}, " The final answer is 20.").correct);
  EXPECT_TRUE(task.check(record, {}, " $20.00").correct);
  EXPECT_FALSE(task.check(record, {}, " We get 21.").correct);
  EXPECT_FALSE(task.check(record, {}, " I do not know").correct);
  record.task = "gsm8k";
  record.check = R"({"form": "number"})";
  record.answer = "1,020";
  EXPECT_TRUE(task.check(record, {}, "1020 dollars").correct);
  EXPECT_FALSE(task.check(record, {}, "20").correct);
}

TEST(TotTask, a_state_is_parsed_into_one_order_of_facts) {
  const TotTask& task = tot_task("blocks");
  const auto read = task.parse(
      "state",
      " The hand takes it.\n[STATE 1] I have that, the hand is empty, the red block is on the "
      "table, the blue block is on top of the red block and the blue block is clear.\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(read,
            task.parse("state",
                       "I have that, the blue block is clear, the blue block is on top of the "
                       "red block, the red block is on the table, the hand is empty."));
  for (const char* text : {"", "the hand is empty", "I have that, nothing.",
                           "I have that, the red block is on the table, the hand is empty."})
    EXPECT_FALSE(task.parse("state", text)) << text;
  EXPECT_TRUE(task.parse("action", " unstack the red block from on top of the blue block"));
  EXPECT_FALSE(task.parse("action", " think about the red block"));
  EXPECT_FALSE(task.parse("action", "  </s>"));
}

TEST(TotTask, generated_questions_have_the_required_form) {
  for (const Record& record : tot_questions("arith", {.count = 6}, 6, "")) {
    EXPECT_EQ(form_of(record), "gsm8k");
    EXPECT_EQ(tot_task("arith").question(record).find("ASSISTANT"), std::string::npos);
    EXPECT_TRUE(tot_task("arith").check(record, {}, record.completion).correct);
  }
  const auto six = tot_questions("blocks", {.level = 2, .count = 4}, 6, "");
  ASSERT_EQ(six.size(), 4u);
  for (const Record& record : six) {
    const auto actions = split_text(record.answer, ';');
    EXPECT_EQ(actions.size(), 6u);
    ThoughtChain chain;
    for (const std::string& action : actions) chain.push_back({{"action", action}});
    EXPECT_TRUE(tot_task("blocks").check(record, chain, "").correct);
    chain.pop_back();
    EXPECT_FALSE(tot_task("blocks").check(record, chain, "").correct);
  }
  EXPECT_TRUE(tot_questions("blocks", {.level = 1, .count = 1}, 6, "").empty());
  EXPECT_FALSE(tot_questions("blocks", {.level = 1, .count = 1}, 0, "").empty());
}

TEST(TotTask, generated_and_open_passages_share_a_prompt) {
  const auto questions = tot_questions("write", {.count = 8}, 6, "");
  ASSERT_EQ(questions.size(), 8u);
  int n_chat = 0;
  for (const Record& record : questions) {
    EXPECT_EQ(form_of(record), "passage");
    n_chat += record.prompt.starts_with("USER: ");
    const std::string task = tot_task("write").slots(record, {}).at("task");
    EXPECT_EQ(task.find("USER:"), std::string::npos);
    EXPECT_EQ(task.find("ASSISTANT"), std::string::npos);
    const std::string& text = record.completion;
    const auto at = text.find("Passage:\n");
    ASSERT_NE(at, std::string::npos);
    const std::string passage(completion_body(text.substr(at + 9)));
    const ThoughtChain plan = {{{"plan", "First: Anna"}}};
    EXPECT_FALSE(tot_task("write").is_complete(record, plan));
    EXPECT_FALSE(tot_task("write").check(record, plan, "").correct);
    const ThoughtChain chain = {{{"plan", "First: Anna"}}, {{"passage", passage}}};
    EXPECT_TRUE(tot_task("write").is_complete(record, chain));
    EXPECT_TRUE(tot_task("write").check(record, chain, "").correct);
    const ThoughtChain cut = {{{"passage", passage.substr(0, passage.rfind('\n'))}}};
    EXPECT_FALSE(tot_task("write").check(record, cut, "").correct);
  }
  EXPECT_GT(n_chat, 0);
  EXPECT_LT(n_chat, 8);
}

TEST(TotTask, unusable_input_is_refused_with_the_reason) {
  EXPECT_THAT(refusal([] { tot_questions("blocksworl", {}, 6, ""); }, ErrorCode::Usage),
              HasSubstr("did you mean blocksworld"));
  Record sums, letter;
  sums.task = "arith";
  sums.check = R"({"form": "gsm8k"})";
  letter.task = "arith";
  letter.check = R"({"form": "aqua"})";
  EXPECT_EQ(tot_questions_of({sums, letter}, 6).size(), 1u);
  EXPECT_TRUE(tot_questions_of({}, 6).empty());
  EXPECT_THAT(refusal([&] { tot_questions_of({letter}, 6); }, ErrorCode::BadInput),
              HasSubstr("no question for a tree of thoughts"));
  Record other = sums;
  other.task = "gsm8k";
  EXPECT_THAT(refusal(
                  [&] {
                    tot_questions_of({sums, other}, 6);
                  },
                  ErrorCode::BadInput),
              HasSubstr("one task"));
}

TEST(TotTask, reads_the_open_sets) {
  const std::string data = data_folder();
  if (data.empty()) GTEST_SKIP() << kNoDataFolder;
  EXPECT_EQ(tot_questions("gsm8k", {.start = 3, .count = 100}, 6, data).size(), 100u);
  EXPECT_EQ(tot_questions("blocksworld", {.count = 1000}, 6, data).size(), 116u);
  EXPECT_EQ(tot_questions("blocksworld", {.count = 1000}, 0, data).size(), 432u);
  const auto writing = tot_questions("creative_writing", {.count = 1000}, 6, data);
  ASSERT_EQ(writing.size(), 80u);
  EXPECT_THAT(tot_task("creative_writing").slots(writing[0], {}).at("task"),
              EndsWith("different perception of who you are."));
}

}  // namespace
}  // namespace engine::test

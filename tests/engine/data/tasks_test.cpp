// The properties that all generators share, tested on each of them.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <string>
#include <unordered_map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/record.h"

namespace engine {
namespace {

constexpr Split kSplits[] = {Split::Train, Split::Dev, Split::Test};

// Checking a py record starts a process, and so does one chat record in thirteen; py_test.cpp
// checks more of them.
int n_records(const std::string& task, Split split) {
  return task == "py" ? 2 : split == Split::Train && task != "chat" ? 200 : 30;
}

TEST(Tasks, a_record_is_a_function_of_its_id) {
  for (const auto& name : task_names()) {
    const auto& task = task_generator(name);
    for (int level = 1; level <= 3; level++) {
      const auto late = task.make(Split::Train, level, 1000003);
      const auto first = task.make(Split::Train, level, 0);
      const auto again = task.make(Split::Train, level, 1000003);
      ASSERT_TRUE(late && first && again);
      EXPECT_EQ(to_json_line(*late), to_json_line(*again));
      EXPECT_NE(late->prompt + late->completion, first->prompt + first->completion);
    }
  }
}

TEST(Tasks, every_record_passes_its_own_checker) {
  for (const auto& name : task_names()) {
    const auto& task = task_generator(name);
    for (const Split split : kSplits) {
      for (int level = 1; level <= 3; level++) {
        for (int i = 0; i < n_records(name, split); i++) {
          const auto record = task.make(split, level, i);
          ASSERT_TRUE(record) << name << level;
          const auto result = task.check(*record, record->completion);
          EXPECT_TRUE(result.correct || result.skipped) << record->id << ": " << result.reason;
          if (result.skipped) break;
          EXPECT_TRUE(task.check(*record, record->completion + "</s>").correct) << record->id;
        }
      }
    }
  }
}

TEST(Tasks, the_splits_share_no_text) {
  for (const auto& name : task_names()) {
    const auto& task = task_generator(name);
    std::unordered_map<std::string, Split> seen;
    for (const Split split : kSplits) {
      for (int level = 1; level <= 3; level++) {
        for (int i = 0; i < (split == Split::Train ? 800 : 80); i++) {
          const auto record = task.make(split, level, i);
          // Plain text has no prompt.
          const std::string& text = record->prompt.empty() ? record->completion : record->prompt;
          const auto [it, fresh] = seen.emplace(text, split);
          EXPECT_TRUE(fresh || it->second == split) << record->id << "\n" << text;
        }
      }
    }
  }
}

// Reduces an arithmetic problem to its structure: the numbers and operation words of the prompt in
// order, then the calculations of the solution. Empty for other forms.
std::string arithmetic_of(const Record& record) {
  static const std::set<std::string> kWords = {"than",  "half",    "third",    "quarter", "times",
                                               "boxes", "piles",   "bags",     "both",    "shared",
                                               "all",   "dollars", "together", "%"};
  if (record.completion.find("#### ") == std::string::npos) return {};
  std::string normal, word;
  for (const char c : record.prompt + " ") {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || c == '%') {
      word += static_cast<char>(std::tolower(u));
      continue;
    }
    const bool number = !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    if (number || kWords.contains(word)) normal += word + " ";
    word.clear();
  }
  const std::string& text = record.completion;
  for (auto at = text.find("<<"); at != std::string::npos; at = text.find("<<", at + 2))
    normal += "| " + text.substr(at + 2, text.find('=', at) - at - 2);
  return normal;
}

// A key of the problem decides its split. If the key contained more than the text shows, equal
// problems would occur in two splits. Level 1 has few enough problems to repeat them.
TEST(Tasks, the_splits_share_no_arithmetic) {
  const TaskGenerator& task = task_generator("arith");
  std::unordered_map<std::string, Split> seen;
  int n = 0;
  for (const Split split : kSplits) {
    for (int i = 0; i < (split == Split::Train ? 8000 : 800); i++) {
      const auto record = task.make(split, 1, i);
      const std::string problem = arithmetic_of(*record);
      if (problem.empty()) continue;
      n++;
      const auto [it, fresh] = seen.emplace(problem, split);
      EXPECT_TRUE(fresh || it->second == split) << record->id << "\n" << problem;
    }
  }
  // The test is meaningful only if problems repeat within a split.
  EXPECT_GT(n - static_cast<int>(seen.size()), 500);
}

// The block on top of `block` in a record's facts, or "nothing".
std::string on_top_of(const nlohmann::json& init, const std::string& block) {
  for (const std::string fact : init)
    if (fact.starts_with("on ") && fact.ends_with(" " + block))
      return fact.substr(3, fact.find(' ', 3) - 3);
  return "nothing";
}

TEST(Tasks, notes_before_a_plan_match_the_state) {
  const TaskGenerator& task = task_generator("blocks");
  int n = 0, n_there = 0;
  for (int i = 0; i < 300; i++) {
    const auto record = task.make(Split::Test, 2, i);
    if (!record->prompt.ends_with("My plan is as follows:\n\n")) continue;
    n++;
    const nlohmann::json check = nlohmann::json::parse(record->check);
    const nlohmann::json& init = check.at("init");
    for (const std::string fact : check.at("goal")) {
      const std::string upper = fact.substr(3, fact.find(' ', 3) - 3);
      const std::string lower = fact.substr(fact.rfind(' ') + 1);
      const auto at = record->completion.find(upper + " on " + lower + ": ");
      ASSERT_NE(at, std::string::npos) << record->completion;
      const std::string note =
          record->completion.substr(at, record->completion.find('\n', at) - at);
      const bool there = std::find(init.begin(), init.end(), nlohmann::json(fact)) != init.end();
      n_there += there;
      EXPECT_EQ(note.ends_with("it is there."), there) << note;
      if (there) continue;
      EXPECT_NE(note.find("; on " + upper + ": " + on_top_of(init, upper)), std::string::npos);
      EXPECT_NE(note.find("; on " + lower + ": " + on_top_of(init, lower)), std::string::npos);
    }
  }
  EXPECT_GT(n, 40);
  EXPECT_GT(n_there, 5);
}

TEST(Tasks, plans_without_notes_occur_only_in_training) {
  const TaskGenerator& task = task_generator("blocks");
  int n_in_training = 0;
  for (int i = 0; i < 300; i++) {
    n_in_training += task.make(Split::Train, 1, i)->prompt.ends_with("[PLAN]\n");
    EXPECT_FALSE(task.make(Split::Test, 1, i)->prompt.ends_with("[PLAN]\n"));
  }
  EXPECT_GT(n_in_training, 10);
}

TEST(Tasks, garbage_is_wrong_without_an_exception) {
  const std::string garbage[] = {"",
                                 " ",
                                 "</s>",
                                 std::string("\0\x01\xff\xfe", 4),
                                 "####",
                                 "#### 99999999999999999999999999",
                                 "<<",
                                 "<<1/0=1>>1 #### 1",
                                 "<<9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9*9=1>>1",
                                 "So the answer is",
                                 "So the answer is (Z).",
                                 "So the answer is maybe.",
                                 "Score:",
                                 "Score: 11",
                                 "Score: -3",
                                 "SELECT",
                                 "SELECT * FROM sqlite_master, sqlite_master",
                                 "DROP TABLE student; SELECT 1",
                                 "SELECT ((((((((((((((((((((",
                                 "SELECT 1; DELETE FROM student",
                                 "ATTACH 'x' AS y",
                                 "[PLAN END]",
                                 "the  block  block the block",
                                 "fly the red block to the moon",
                                 "I have that, the red block is on top of the red block",
                                 "def f(:\n  return",
                                 std::string(100000, '('),
                                 std::string(20000, 'x') + " block"};
  for (const auto& name : task_names()) {
    const auto& task = task_generator(name);
    for (int level = 1; level <= 3; level++) {
      for (int i = 0; i < (name == "py" ? 1 : 12); i++) {  // one chat record in thirteen is Python
        const auto record = task.make(Split::Test, level, i);
        for (const auto& text : garbage) {
          if (name == "py" && level > 1) break;  // each check starts a process
          const auto result = task.check(*record, text);
          if (result.skipped) continue;
          EXPECT_FALSE(result.correct) << record->id << " accepts '" << text.substr(0, 60) << "'";
          EXPECT_FALSE(result.reason.empty()) << record->id;
        }
      }
    }
  }
}

TEST(Tasks, an_unknown_task_is_refused_with_the_known_ones) {
  try {
    task_generator("arithmetics");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Usage);
    EXPECT_NE(std::string(e.what()).find("arith"), std::string::npos);
  }
}

TEST(Tasks, a_record_is_unchanged_by_json) {
  for (const auto& name : task_names()) {
    const auto record = task_generator(name).make(Split::Dev, 2, 5);
    const auto back = record_from_json(to_json_line(*record), "here:1");
    EXPECT_EQ(to_json_line(back), to_json_line(*record));
    EXPECT_EQ(task_generator(name).check(back, record->completion).reason,
              task_generator(name).check(*record, record->completion).reason);
  }
}

TEST(Tasks, malformed_records_are_refused_with_line_and_field) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "f.jsonl:7"}, {"[]", "object"}, {"{\"id\": 3}", "id"}, {"{\"id\": \"x\"}", "task"}};
  for (const auto& [line, expected] : cases) {
    try {
      record_from_json(line, "f.jsonl:7");
      FAIL() << line;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("f.jsonl:7"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace engine

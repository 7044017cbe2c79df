// The chat and plain tasks: categories and checkers, and how often open texts are drawn.
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/chat/dialog.h"
#include "engine/data/open_texts.h"
#include "engine/data/text.h"

namespace engine {
namespace {

using Json = nlohmann::json;

const std::set<std::string> kCategories = {
    "writing",    "roleplay", "reasoning", "math",         "coding", "extraction",    "stem",
    "humanities", "generic",  "knowledge", "common-sense", "fermi",  "counterfactual"};

struct ChatRecord {
  Record record;
  Json check;
};

std::vector<ChatRecord> chat_records(Split split, int level, int count) {
  std::vector<ChatRecord> records;
  for (int i = 0; i < count; i++) {
    auto record = task_generator("chat").make(split, level, i);
    EXPECT_TRUE(record);
    if (!record) continue;
    records.push_back({*record, Json::parse(record->check)});
  }
  return records;
}

// True if the checker accepts the completion; nullopt if it needs Python and this machine has none.
std::optional<bool> right(const Record& record, const std::string& completion) {
  const CheckResult result = task_generator("chat").check(record, completion);
  if (result.skipped) return std::nullopt;
  return result.correct;
}

std::size_t times(const std::string& text, const std::string& phrase) {
  std::size_t n = 0;
  for (auto at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) n++;
  return n;
}

TEST(Chat, all_thirteen_categories_are_equally_frequent) {
  for (const Split split : {Split::Train, Split::Test}) {
    std::map<std::string, int> n;
    std::map<int, int> turns;
    int n_bare = 0;
    for (const auto& [record, check] : chat_records(split, 1, 650)) {
      n[check.at("category")]++;
      const int turn = check.at("turn");
      turns[turn]++;
      EXPECT_EQ(times(record.prompt, "USER: "), static_cast<std::size_t>(turn));
      EXPECT_EQ(times(record.prompt, " ASSISTANT:"), static_cast<std::size_t>(turn));
      EXPECT_TRUE(record.prompt.ends_with(" ASSISTANT:"));
      EXPECT_TRUE(record.completion.starts_with(" "));
      n_bare += record.prompt.starts_with("USER: ");
    }
    EXPECT_EQ(n.size(), kCategories.size());
    for (const auto& [category, count] : n) {
      EXPECT_TRUE(kCategories.contains(category)) << category;
      EXPECT_NEAR(count, 50, 30) << category;
    }
    EXPECT_NEAR(turns[1], 325, 70);
    EXPECT_NEAR(n_bare, 325, 70);
  }
}

// Changes the last digit of the text.
std::string with_another_digit(std::string text) {
  const auto at = text.find_last_of("0123456789");
  if (at == std::string::npos) return text;
  text[at] = text[at] == '9' ? '0' : static_cast<char>(text[at] + 1);
  return text;
}

std::string without_last_line(const std::string& text) {
  const auto at = text.find_last_of('\n');
  return at == std::string::npos ? std::string() : text.substr(0, at);
}

std::string with_two_lines_exchanged(const std::string& text) {
  auto lines = split_text(trimmed(text), '\n');
  if (lines.size() < 2) return text;
  std::swap(lines[0], lines[1]);
  return joined(lines, "\n");
}

// Puts a fault into the completion that the checker of its form must find.
std::string spoiled(const ChatRecord& chat) {
  const std::string& text = chat.record.completion;
  const Json& of = chat.check.at("of");
  const std::string task = chat.check.at("task"), form = of.at("form");
  if (task == "arith") return with_another_digit(text);
  if (task == "py") return replaced_all(text, "return ", "return not ");
  if (task == "write") return text + " And so on.";
  if (task == "blocks")
    return form == "state" ? replaced_all(text, "is clear", "is on the table")
                           : without_last_line(text);
  if (task == "kb")
    return form == "statement" ? text + " A fish is a bird."
                               : replaced_all(text, "So the answer is", "Nobody knows");
  if (form == "facts" || form == "order") return with_two_lines_exchanged(text);
  if (form == "fact") return text + " It is green.";
  if (form == "names") return text + "\n9. ghost";
  if (form == "what if") return text + " That is all.";
  if (form == "table") return with_another_digit(text);
  if (form == "letter") return without_last_line(text);
  if (form == "persona") return text + " I saw the moon fall.";
  ADD_FAILURE() << form;
  return text;
}

TEST(Chat, every_form_accepts_its_answer_and_rejects_a_fault) {
  std::map<std::string, int> n;
  for (int level = 1; level <= 3; level++) {
    for (const ChatRecord& chat : chat_records(Split::Test, level, 260)) {
      const std::string kind = chat.check.at("task").get<std::string>() + ": " +
                               chat.check.at("of").at("form").get<std::string>();
      n[kind.substr(0, kind.find(','))]++;
      const auto as_written = right(chat.record, chat.record.completion);
      if (!as_written) continue;
      EXPECT_TRUE(*as_written) << chat.record.id;
      EXPECT_EQ(right(chat.record, spoiled(chat)), false) << kind << " " << chat.record.id << "\n"
                                                          << spoiled(chat);
      EXPECT_EQ(right(chat.record, ""), false) << kind;
    }
  }
  for (const char* kind :
       {"arith: gsm8k", "arith: final", "py: codesearchnet", "write: passage", "blocks: plan",
        "blocks: state", "kb: choice", "kb: statement", "chat: facts", "chat: fact", "chat: names",
        "chat: order", "chat: what if", "chat: table", "chat: letter", "chat: persona"})
    EXPECT_GT(n[kind], 0) << kind;
}

TEST(Chat, a_check_without_a_known_task_is_refused) {
  Record record = *task_generator("chat").make(Split::Test, 1, 0);
  for (
      const char* check :
      {R"({"form": "math"})", R"({"form": "math", "task": "sql", "of": {}})",
       R"({"form": "math", "task": "chat", "of": {"form": "dream"}})", "[]",
       R"({"form": "math", "task": "chat", "of": {"form": "fact", "member": "x", "topic": 1}})",
       R"({"form": "math", "task": "chat", "of": {"form": "fact", "member": "owl", "topic": 99}})"}) {
    record.check = check;
    try {
      task_generator("chat").check(record, "text");
      FAIL() << check;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput) << check;
    }
  }
}

TEST(Chat, a_second_letter_has_to_differ_from_the_first) {
  int n = 0;
  for (const ChatRecord& chat : chat_records(Split::Test, 1, 400)) {
    if (chat.check.at("of").at("form") != "letter" || chat.check.at("turn") != 2) continue;
    n++;
    const auto at = chat.record.prompt.find(" ASSISTANT: ") + 12;
    const std::string first =
        chat.record.prompt.substr(at, chat.record.prompt.find(" USER: ", at) - at);
    EXPECT_EQ(right(chat.record, first), false) << first;
  }
  EXPECT_GT(n, 3);
}

TEST(NumberedLists, lines_are_numbered_from_one_without_gaps) {
  EXPECT_EQ(read_numbered_list("1. a\n\n 2. b c\n"), (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(read_numbered_list(numbered_list({"x", "y"})), (std::vector<std::string>{"x", "y"}));
  for (const char* text : {"", "a", "2. a", "1. a\n3. b", "1. a\nb", "1) a"})
    EXPECT_FALSE(read_numbered_list(text)) << text;
}

TEST(Plain, texts_consist_of_facts_and_have_no_prompt) {
  for (int level = 1; level <= 3; level++) {
    for (int i = 0; i < 30; i++) {
      const auto record = task_generator("plain").make(Split::Dev, level, i);
      ASSERT_TRUE(record);
      EXPECT_EQ(record->prompt, "");
      const auto& task = task_generator("plain");
      EXPECT_TRUE(task.check(*record, record->completion).correct);
      EXPECT_FALSE(task.check(*record, record->completion + " It is green.").correct);
      EXPECT_FALSE(task.check(*record, "A ghost is a fish. A ghost can swim.").correct);
      EXPECT_LE(static_cast<int>(Json::parse(record->check).at("members").size()), level);
    }
  }
}

TEST(OpenPool, draws_texts_in_proportion_to_their_copies) {
  OpenPool pool(900);
  EXPECT_EQ(pool.full_size(), 0);
  Random rng(1);
  EXPECT_EQ(pool.draw(rng, Split::Train), nullptr);
  const auto text = [](const char* name, const char* split) {
    Record record;
    record.completion = name;
    record.split = split;
    return record;
  };
  for (int i = 0; i < 10; i++) pool.add(text("often", "train"), 8);
  for (int i = 0; i < 5; i++) pool.add(text("seldom", "train"), 4);
  pool.add(text("unseen", "test"), 8);
  EXPECT_EQ(pool.full_size(), 1000);
  std::map<std::string, int> n;
  for (int i = 0; i < 20000; i++) {
    const Record* record = pool.draw(rng, Split::Train);
    n[record == nullptr ? "own" : record->completion]++;
  }
  EXPECT_NEAR(n["own"], 18000, 200);
  EXPECT_NEAR(n["often"], 1600, 150);
  EXPECT_NEAR(n["seldom"], 400, 80);
  EXPECT_EQ(n.size(), 3u);
  int n_unseen = 0;
  for (int i = 0; i < 2000; i++) n_unseen += pool.draw(rng, Split::Test) != nullptr;
  EXPECT_NEAR(n_unseen, 200, 60);
  EXPECT_EQ(pool.draw(rng, Split::Dev), nullptr);
}

}  // namespace
}  // namespace engine

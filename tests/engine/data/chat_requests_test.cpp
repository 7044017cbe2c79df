// Requests to a chat model: their texts, splits and order, and their overlap with evaluation texts.
#include "engine/data/chat_requests.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/text.h"
#include "tests/support/refusal.h"
#include "tests/support/request_data.h"

namespace engine {
namespace {

using testing::HasSubstr;

constexpr const char* kMixture = R"({"gsm8k": {"weight": 0.5}, "creak": {"weight": 0.3},
                                     "writing": {"weight": 0.2}})";
constexpr Split kSplits[] = {Split::Train, Split::Dev, Split::Test};

class Requests : public testing::Test {
 protected:
  void SetUp() override { test::write_request_data(folder_.path()); }
  ChatRequests requests(const std::string& mixture, Split split, std::uint64_t seed = 1) const {
    return {mixture, seed, folder_.path(), split};
  }
  void write(const std::string& set, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(folder_ / set);
    test::write_file(folder_ / (set + "/" + file), text);
  }
  /// The only request of a part.
  std::string only(const std::string& part) const {
    std::string text;
    for (const Split split : kSplits) {
      const ChatRequests of_split = requests(R"({")" + part + R"(": {"weight": 1}})", split);
      for (const ChatRequest& request : of_split.list()) text += request.text;
    }
    return text;
  }
  test::Folder folder_;
};

TEST_F(Requests, read_as_a_person_asks) {
  write(
      "mbpp", "mbpp.jsonl",
      R"({"task_id": 601, "text": "Write a function to add.", "code": "x",)"
      R"( "test_setup_code": "", "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]})");
  EXPECT_EQ(only("mbpp"),
            "Write a function to add.\nYour code should pass this test:\nassert add(1, 2) == 3");
  write("aqua", "train.json",
        R"({"question": "2 + 2?", "options": ["A)4", "B)5"], "rationale": "So.", "correct": "A"})");
  EXPECT_EQ(only("aqua"), "2 + 2?\nAnswer choices: (A) 4 (B) 5");
  write("wikisql", "train.jsonl",
        R"({"columns": ["year", "team"], "question": "Which team won?", "sql": "SELECT team"})");
  EXPECT_THAT(only("wikisql"), HasSubstr("Which team won?"));
  EXPECT_THAT(only("wikisql"), HasSubstr("Database: table named data with columns [year, team]."));
  write("taskmaster4", "train.jsonl",
        R"({"utterances": [{"speaker": "user", "text": "A tea, please."},)"
        R"( {"speaker": "assistant", "text": "Here you are."}]})");
  EXPECT_EQ(only("taskmaster4"), "A tea, please.");
  write("self_instruct", "seed_tasks.jsonl",
        R"({"instruction": "Sort.", "instances": [{"input": "b a", "output": "a b"}]})");
  EXPECT_EQ(only("self_instruct"), "Sort.\nb a");
  write("strategyqa", "train.json",
        R"([{"question": "Do cats fly?", "facts": ["Cats walk"], "answer": false}])");
  EXPECT_EQ(only("strategyqa"), "Do cats fly?");
  write("python_puzzles", "puzzles.json",
        R"([{"sat": "def sat(i):\n    return i > 3", "sol_header": "def sol():",)"
        R"( "sol_bodies": ["    return 4", "    return 5"]}])");
  EXPECT_THAT(only("python_puzzles"), HasSubstr("returns True:\n\ndef sat(i):\n    return i > 3"));
  EXPECT_THAT(only("creak"), HasSubstr("Is it true that A cat can eat?"));
  EXPECT_THAT(only("writing"), HasSubstr("A cat can eat."));
}

TEST_F(Requests, are_distinct_and_each_question_is_in_one_split) {
  std::set<std::string> texts, questions[3];
  std::size_t n = 0, n_train = 0;
  for (const Split split : kSplits) {
    const ChatRequests of_split = requests(kMixture, split);
    for (const ChatRequest& request : of_split.list()) {
      texts.insert(request.text);
      questions[static_cast<int>(split)].insert(request.question);
    }
    n += of_split.list().size();
    if (split == Split::Train) n_train = n;
  }
  EXPECT_EQ(n, 97u + 60 + 60);
  EXPECT_EQ(texts.size(), n);
  EXPECT_EQ(questions[0].size() + questions[1].size() + questions[2].size(), 97u + 60);
  EXPECT_GT(n_train, n * 3 / 4);
  EXPECT_GT(questions[1].size(), 0u);
}

TEST_F(Requests, order_depends_on_the_seed_and_mixes_the_parts) {
  const ChatRequests first = requests(kMixture, Split::Train);
  EXPECT_EQ(first.hash(), requests(kMixture, Split::Train).hash());
  EXPECT_NE(first.hash(), requests(kMixture, Split::Train, 2).hash());
  const auto shares = first.shares(80);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[1].part, "gsm8k");
  EXPECT_NEAR(shares[1].share_of_texts, 0.5, 0.2);
}

TEST_F(Requests, overlap_evaluation_texts_by_content) {
  const EvaluationTexts evaluation(folder_.path());
  EXPECT_THAT(evaluation.sets(), testing::ElementsAre("gsm8k", "creak"));
  const auto overlap = [&](const std::string& text, const std::string& question = "-") {
    return evaluation.overlap(ChatRequest{"part", text, question});
  };
  EXPECT_TRUE(overlap("a cat, can SLEEP"));
  EXPECT_TRUE(overlap("Is it true that a cat can sleep?", "A cat can sleep."));
  EXPECT_FALSE(overlap("Is it true that a cat can sleep?"));
  // 13 consecutive words of the evaluation question, then 12.
  EXPECT_TRUE(
      overlap("Then anna buys THREE red apples - and four green pears at the market. How!"));
  EXPECT_FALSE(overlap("buys three red apples and four green pears at the market. Why?"));
  int n = 0;
  const ChatRequests training = requests(kMixture, Split::Train);
  for (const ChatRequest& request : training.list()) n += evaluation.overlap(request);
  EXPECT_GT(n, 0);
}

TEST_F(Requests, error_names_the_field_of_the_recipe) {
  const auto message = [&](const std::string& mixture) {
    return test::refusal([&] { requests(mixture, Split::Train); });
  };
  EXPECT_THAT(message(R"({"arith": {"weight": 1}})"),
              HasSubstr("mixture: arith: found no such part of chat requests, expected one of "));
  EXPECT_THAT(message(R"({"gsm8k": {"weight": 0}})"),
              HasSubstr("mixture: gsm8k: expected {\"weight\": a number above 0}"));
  EXPECT_THAT(message(R"({"gsm8k": {"weight": 1, "levels": [1, 0, 0]}})"), HasSubstr("gsm8k"));
  EXPECT_THAT(message("[]"), HasSubstr("mixture: recipe: expected"));
  EXPECT_THAT(test::refusal([] { ChatRequests(kMixture, 1, "", Split::Train); }),
              HasSubstr("--data DIR"));
}

}  // namespace
}  // namespace engine

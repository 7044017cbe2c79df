// Tests the reader of each open data set on a few invented lines in the set's format. The data sets
// themselves are not needed.
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"
#include "engine/data/readers.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using Json = nlohmann::json;

/// The expected number of records of a split, and the first one.
struct Expected {
  std::size_t n = 0;
  std::string prompt, completion, answer;
};

struct OwnSet {
  std::string name;
  std::vector<std::pair<std::string, std::string>> files;  // path in the folder, contents
  std::optional<Expected> train, test;                     // nullopt: the set lacks this part
};

std::string lines(const std::vector<Json>& items) {
  std::string text;
  for (const Json& item : items) text += item.dump() + "\n";
  return text;
}

const std::string kSqlPrompt =
    "### Instruction:\nCould you translate the following question into SQL. Please only generate "
    "SQL, don't include explanation in the answer. The SQL database has ";
const std::string kPythonPrompt = "You are an expert Python programmer, and here is your task: ";

OwnSet own_gsm8k() {
  return {
      "gsm8k",
      {{"gsm8k/train.jsonl", lines({{{"question", "Mia has 3 cups and buys 4. How many are there?"},
                                     {"answer", "There are 3 + 4 = <<3+4=7>>7 cups.\n#### 7"}}})},
       {"gsm8k/test.jsonl", lines({{{"question", "A shelf holds 2 rows of 5 jars. How many?"},
                                    {"answer", "It holds 2 * 5 = 10 jars.\n#### 10"}}})}},
      Expected{1,
               "Question:\nMia has 3 cups and buys 4. How many are there?\nAnswer:\nLet's "
               "think step by step.\n",
               "There are 3 + 4 = <<3+4=7>>7 cups.\n#### 7\n", "7"},
      Expected{1,
               "Question:\nA shelf holds 2 rows of 5 jars. How many?\nAnswer:\nLet's think "
               "step by step.\n",
               "It holds 2 * 5 = 10 jars.\n#### 10\n", "10"}};
}

// Training leaves out questions without a rationale; evaluation does not.
OwnSet own_commonsenseqa() {
  const auto question = [](const char* id, const char* stem, const char* key) {
    return Json{
        {"id", id},
        {"question",
         {{"stem", stem},
          {"choices", {{{"label", "A"}, {"text", "oven"}}, {{"label", "B"}, {"text", "fridge"}}}}}},
        {"answerKey", key}};
  };
  return {"commonsenseqa",
          {{"commonsenseqa/train_rand_split.jsonl",
            lines({question("b", "Where is it loud?", "A"), question("a", "Where is milk?", "B")})},
           {"commonsenseqa/dev_rand_split.jsonl", lines({question("c", "Where is bread?", "A")})},
           {"cos_e/cose_train_v1.11.jsonl",
            lines({{{"id", "a"}, {"explanation", {{"open-ended", "milk stays fresh where it is"}}}},
                   {{"id", "b"}, {"explanation", {{"open-ended", "too short"}}}}})},
           {"cos_e/cose_dev_v1.11.jsonl", ""}},
          Expected{1, "Q: Where is milk? Answer Choices: (A) oven (B) fridge\nA:",
                   " Milk stays fresh where it is. So the answer is (B).", "B"},
          Expected{1, "Q: Where is bread? Answer Choices: (A) oven (B) fridge\nA:",
                   " So the answer is (A).", "A"}};
}

OwnSet own_strategyqa() {
  const auto list = [](const char* question, bool answer) {
    return Json::array({{{"question", question},
                         {"facts", {"ice melts above 0 degrees", "A summer day is warmer."}},
                         {"answer", answer}}})
        .dump();
  };
  return {
      "strategyqa",
      {{"strategyqa/train.json", list("Does ice last in summer?", false)},
       {"strategyqa/dev.json", list("Does ice melt in summer?", true)}},
      Expected{1, "Q: Does ice last in summer?\nA:",
               " Ice melts above 0 degrees. A summer day is warmer. So the answer is no.", "no"},
      Expected{1, "Q: Does ice melt in summer?\nA:",
               " Ice melts above 0 degrees. A summer day is warmer. So the answer is yes.", "yes"}};
}

OwnSet own_aqua() {
  const auto item = [](const char* question, const char* rationale, const char* correct) {
    return lines({{{"question", question},
                   {"options", {"A)20 km/h", "B)30 km/h"}},
                   {"rationale", rationale},
                   {"correct", correct}}});
  };
  return {"aqua",
          {{"aqua/train.json", item("A boat goes 60 km in 2 hours. How fast?", "60 / 2 = 30", "B")},
           {"aqua/test.json", item("A boat goes 20 km in 1 hour. How fast?", "20 / 1 = 20.", "A")}},
          Expected{1,
                   "Q: A boat goes 60 km in 2 hours. How fast? Answer Choices: (A) 20 km/h (B) 30 "
                   "km/h\nA:",
                   " 60 / 2 = 30. So the answer is (B).", "B"},
          Expected{1,
                   "Q: A boat goes 20 km in 1 hour. How fast? Answer Choices: (A) 20 km/h (B) 30 "
                   "km/h\nA:",
                   " 20 / 1 = 20. So the answer is (A).", "A"}};
}

// Problems 511 to 974 are the training part, 11 to 510 the test part, the others few-shot examples.
OwnSet own_mbpp() {
  const auto item = [](int id, const char* text, const char* code, const char* test) {
    return Json{{"task_id", id},
                {"text", text},
                {"code", code},
                {"test_list", {test}},
                {"test_setup_code", ""}};
  };
  return {"mbpp",
          {{"mbpp/mbpp.jsonl",
            lines({item(5, "Write nothing.", "x = 1", "assert x == 1"),
                   item(20, "Write a function to halve a number.",
                        "def halve(n):\n    return n / 2", "assert halve(4) == 2"),
                   item(600, "Write a function to double a number.",
                        "def double(n):\r\n\treturn 2 * n", "assert double(2) == 4")})}},
          Expected{1,
                   kPythonPrompt +
                       "Write a function to double a number. Your code should pass these tests:\n\n"
                       "assert double(2) == 4\n[BEGIN]\n",
                   "def double(n):\n    return 2 * n\n[DONE]\n", ""},
          Expected{1,
                   kPythonPrompt +
                       "Write a function to halve a number. Your code should pass these tests:\n\n"
                       "assert halve(4) == 2\n[BEGIN]\n",
                   "def halve(n):\n    return n / 2\n[DONE]\n", ""}};
}

OwnSet own_wikisql() {
  const auto item = [](const char* question, const char* sql) {
    return lines({{{"question", question}, {"columns", {"town", "bridges"}}, {"sql", sql}}});
  };
  const std::string table =
      kSqlPrompt + "table named data with columns [town, bridges], Question: ";
  const std::string three = "SELECT town FROM data WHERE bridges = 3";
  const std::string all = "SELECT COUNT(town) FROM data";
  return {"wikisql",
          {{"wikisql/train.jsonl", item("Which town has 3 bridges?", three.c_str())},
           {"wikisql/dev.jsonl", item("How many towns are there?", all.c_str())}},
          Expected{1, table + "Which town has 3 bridges?\n### Response:\n", three + "\n", three},
          Expected{1, table + "How many towns are there?\n### Response:\n", all + "\n", all}};
}

OwnSet own_creak() {
  const auto item = [](const char* sentence, const char* label) {
    return lines(
        {{{"sentence", sentence}, {"explanation", "kettles heat water"}, {"label", label}}});
  };
  return {"creak",
          {{"creak/train.json", item("A kettle can boil water.", "true")},
           {"creak/dev.json", item("A kettle can freeze water.", "false")}},
          Expected{1, "Q: Is it true that A kettle can boil water.\nA:",
                   " Kettles heat water. So the answer is yes.", "yes"},
          Expected{1, "Q: Is it true that A kettle can freeze water.\nA:",
                   " Kettles heat water. So the answer is no.", "no"}};
}

OwnSet own_python_puzzles() {
  return {"python_puzzles",
          {{"python_puzzles/puzzles.json",
            Json::array({{{"sat", "def sat(n: int):\n    return n == 4"},
                          {"sol_header", "def sol():"},
                          {"sol_bodies", {"    return 4", "    return 2 + 2"}}}})
                .dump()}},
          Expected{2, "# Make this true.\ndef sat(n: int):\n    return n == 4\n\ndef sol():\n",
                   "    return 4\n", ""},
          std::nullopt};
}

// The test part leaves out a dialog whose beginning occurs in training.
OwnSet own_taskmaster4() {
  const auto dialog = [](const char* first, const char* last = "A slow one.") {
    return Json{{"utterances",
                 {{{"speaker", "user"}, {"text", first}},
                  {{"speaker", "assistant"}, {"text", "Which one?"}},
                  {{"speaker", "user"}, {"text", last}}}}};
  };
  return {
      "taskmaster4",
      {{"taskmaster4/train.jsonl", lines({dialog("Play a song.")})},
       {"taskmaster4/test.jsonl", lines({dialog("Play a song!", "Any."), dialog("Play a tune.")})}},
      Expected{1, "USER: Play a song. ASSISTANT:", " Which one? USER: A slow one.", ""},
      Expected{1, "USER: Play a tune. ASSISTANT:", " Which one? USER: A slow one.", ""}};
}

OwnSet own_self_instruct() {
  const auto item = [](const char* instruction) {
    return lines(
        {{{"instruction", instruction},
          {"instances",
           {{{"input", "very cold"}, {"output", "icy"}}, {{"input", ""}, {"output", "well"}}}}}});
  };
  return {"self_instruct",
          {{"self_instruct/seed_tasks.jsonl", item("Say it in one word.")},
           {"self_instruct/user_oriented_instructions.jsonl", item("Say it briefly.")}},
          Expected{2, "USER: Say it in one word.\nvery cold ASSISTANT:", " icy", ""},
          Expected{2, "USER: Say it briefly.\nvery cold ASSISTANT:", " icy", ""}};
}

// Joins speeches up to 600 characters.
OwnSet own_tinyshakespeare() {
  const auto speech = [](const std::string& who, int n) {
    std::string text = who + ":\n";
    for (int i = 0; i < n; i++) text += "The lamp is lit and nobody has come to see it.\n";
    return text;
  };
  const std::string first = speech("FIRST NEIGHBOUR", 8), second = speech("SECOND NEIGHBOUR", 8);
  return {"tinyshakespeare",
          {{"tinyshakespeare/input.txt", first + "\n" + second + "\n" + speech("PORTER", 1)}},
          Expected{1, "", first + "\n" + second + "\n", ""},
          std::nullopt};
}

OwnSet own_advising() {
  const Json query = {
      {"sql",
       {"SELECT COURSEalias0.NAME FROM COURSE AS COURSEalias0 WHERE COURSEalias0.NUMBER = "
        "number0 ;"}},
      {"variables", {{{"name", "number0"}, {"example", "101"}}}},
      {"sentences",
       {{{"question-split", "train"},
         {"text", "What is number0 called ?"},
         {"variables", {{"number0", "205"}}}},
        {{"question-split", "test"},
         {"text", "Name number0 ."},
         {"variables", {{"number0", ""}}}}}}};
  const std::string table =
      kSqlPrompt + "table named COURSE with columns [NAME, NUMBER], Question: ";
  const auto sql = [](const char* number) {
    return std::string(
               "SELECT COURSEalias0.NAME FROM COURSE AS COURSEalias0 WHERE "
               "COURSEalias0.NUMBER = ") +
           number + " ;";
  };
  return {
      "advising",
      {{"advising/advising-fields.txt", "COURSE NAME\nCOURSE NUMBER\nROOM FLOOR\n"},
       {"advising/advising.json", Json::array({query}).dump()}},
      Expected{1, table + "What is 205 called ?\n### Response:\n", sql("205") + "\n", sql("205")},
      Expected{1, table + "Name 101 .\n### Response:\n", sql("101") + "\n", sql("101")}};
}

OwnSet own_humaneval() {
  const std::string prompt = "def total(a, b):\n    \"\"\"The two together.\"\"\"\n";
  return {"humaneval",
          {{"humaneval/HumanEval.jsonl.gz",
            lines({{{"prompt", prompt},
                    {"canonical_solution", "    return a + b\n"},
                    {"entry_point", "total"},
                    {"test", "def check(f):\n    assert f(1, 2) == 3\n"}}})}},
          std::nullopt,
          Expected{1, prompt, "    return a + b\n", "total"}};
}

OwnSet own_blocksworld() {
  return {"blocksworld",
          {{"blocksworld/problems.jsonl",
            lines({{{"init", {"handempty", "ontable a", "on b a", "clear b"}},
                    {"goal", {"on a b"}},
                    {"plan", {"(unstack b a)", "(put-down b)", "(pick-up a)", "(stack a b)"}},
                    {"steps", 4}}})}},
          std::nullopt,
          Expected{1,
                   "[STATEMENT]\nAs initial conditions I have that, the hand is empty, the red "
                   "block is on the table, the blue block is on top of the red block and the blue "
                   "block is clear.\nMy goal is to have that the red block is on top of the blue "
                   "block.\n\nMy plan is as follows:\n\n[PLAN]\n",
                   "unstack the blue block from on top of the red block\nput down the blue "
                   "block\npick up the red block\nstack the red block on top of the blue "
                   "block\n[PLAN END]\n",
                   "4 steps"}};
}

OwnSet own_bench(const std::string& name) {
  return {name,
          {{name + "/question.jsonl",
            lines({{{"turns", {"Name a river.", "And another."}}, {"category", "places"}}})}},
          std::nullopt,
          Expected{1, "USER: Name a river. ASSISTANT:", "", "places"}};
}

OwnSet own_creative_writing() {
  const std::string four = "It rained all day. The cup was empty. Nobody spoke. He left at noon.";
  return {"creative_writing",
          {{"creative_writing/data_100_random_text.txt", four + "\n\n"}},
          std::nullopt,
          Expected{1,
                   "Write a coherent passage of 4 short paragraphs. The end sentence of each "
                   "paragraph must be: " +
                       four + "\n",
                   "", "4 end sentences"}};
}

// Two fields are quoted: a query with a comma, and two accepted queries.
OwnSet own_defog_sql() {
  return {
      "defog_sql",
      {{"defog_sql/questions_gen_sqlite.csv",
        "db_name,db_type,query_category,query,question,instructions\r\n"
        "shop,sqlite,plain,\"SELECT name FROM item WHERE price > 2; SELECT name, price FROM "
        "item WHERE price > 2;\",Which items cost more than 2?,\n"},
       {"defog_sql/schema/shop.json",
        R"({"table_metadata": {"item": [{"column_name": "name"}, {"column_name": "price"}]}})"},
       {"defog_sql/sqlite/shop.sql",
        "CREATE TABLE item (name TEXT, price REAL); INSERT INTO item VALUES ('cup', 3), "
        "('pin', 1);"}},
      std::nullopt,
      Expected{1,
               kSqlPrompt +
                   "table named item with columns [name, price], Question: Which items cost "
                   "more than 2?\n### Response:\n",
               "SELECT name FROM item WHERE price > 2\n", "SELECT name FROM item WHERE price > 2"}};
}

std::vector<OwnSet> own_sets() {
  return {own_gsm8k(),
          own_commonsenseqa(),
          own_strategyqa(),
          own_aqua(),
          own_mbpp(),
          own_wikisql(),
          own_creak(),
          own_python_puzzles(),
          own_taskmaster4(),
          own_self_instruct(),
          own_tinyshakespeare(),
          own_advising(),
          own_humaneval(),
          own_blocksworld(),
          own_bench("mt_bench"),
          own_bench("vicuna_bench"),
          own_creative_writing(),
          own_defog_sql()};
}

void write(const test::Folder& folder, const OwnSet& set) {
  for (const auto& [name, text] : set.files) {
    const std::string path = folder / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    OutputFile file(path);  // compresses files whose name ends in .gz
    file.write(text);
    file.finish();
  }
}

void expect(const std::vector<Record>& found, const std::optional<Expected>& expected) {
  ASSERT_EQ(found.size(), expected ? expected->n : 0);
  if (!expected) return;
  EXPECT_EQ(found[0].prompt, expected->prompt);
  EXPECT_EQ(found[0].completion, expected->completion);
  EXPECT_EQ(found[0].answer, expected->answer);
}

TEST(OwnSets, every_reader_has_a_sample) {
  std::vector<std::string> names;
  for (const OwnSet& set : own_sets()) names.push_back(set.name);
  EXPECT_EQ(names, real_set_names());
}

TEST(OwnSets, samples_are_read_in_the_format_of_their_set) {
  for (const OwnSet& set : own_sets()) {
    SCOPED_TRACE(set.name);
    const test::Folder folder;
    write(folder, set);
    expect(read_real_set(set.name, Split::Train, folder / "."), set.train);
    expect(read_real_set(set.name, Split::Test, folder / "."), set.test);
  }
}

TEST(OwnSets, right_answers_pass_and_wrong_ones_fail) {
  for (const OwnSet& set : own_sets()) {
    SCOPED_TRACE(set.name);
    const test::Folder folder;
    write(folder, set);
    for (const Record& record : read_real_set(set.name, Split::Test, folder / ".")) {
      if (record.completion.empty()) continue;  // a question without a right answer
      const CheckResult right = check_record(record, record.completion);
      EXPECT_TRUE(right.correct || right.skipped) << right.reason;
      EXPECT_TRUE(right.skipped || !check_record(record, "nothing").correct);
    }
  }
}

TEST(OwnSets, a_missing_file_is_refused_by_its_name) {
  for (const OwnSet& set : own_sets()) {
    for (const auto& [path, text] : set.files) {
      SCOPED_TRACE(path);
      const test::Folder folder;
      write(folder, set);
      std::filesystem::remove(folder / path);
      int n_refused = 0;
      for (const Split split : {Split::Train, Split::Test}) {
        try {
          read_real_set(set.name, split, folder / ".");
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::BadInput);
          EXPECT_NE(std::string(error.what()).find(path.substr(path.find('/'))), std::string::npos)
              << error.what();
          n_refused++;
        }
      }
      EXPECT_GE(n_refused, 1);
    }
  }
}

}  // namespace
}  // namespace engine

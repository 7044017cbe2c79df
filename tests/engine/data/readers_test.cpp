#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"
#include "tests/support/data_folder.h"

namespace engine {
namespace {

class Readers : public testing::Test {
 protected:
  void SetUp() override {
    if (data_folder().empty()) GTEST_SKIP() << kNoDataFolder;
  }
};

// A row of the table in README.md of the data folder.
struct Stated {
  std::string licence;
  std::string records;  // "train 7,473 (1.06 M), test 1,055 (154 k)"
};

std::map<std::string, Stated> stated_sets() {
  std::ifstream readme(data_folder() + "/README.md");
  std::map<std::string, Stated> stated;
  std::string line;
  while (std::getline(readme, line)) {
    const auto cells = split_text(line, '|');
    if (cells.size() < 4) continue;
    const auto name = trimmed(cells[1]);
    if (name.starts_with("`") && name.ends_with("`"))
      stated[std::string(name.substr(1, name.size() - 2))] = {std::string(trimmed(cells[2])),
                                                              std::string(trimmed(cells[3]))};
  }
  return stated;
}

// The number after `word` ("" for the first number), read without commas.
std::size_t stated_count(const std::string& records, const std::string& word) {
  const auto at = records.find(word);
  if (at == std::string::npos) return 0;
  const std::string digits = replaced_all(records.substr(at + word.size()), ",", "");
  return std::strtoul(digits.c_str(), nullptr, 10);
}

TEST_F(Readers, licences_match_the_data_folder) {
  const auto stated = stated_sets();
  ASSERT_FALSE(stated.empty()) << "no README.md in " << data_folder() << " states licences";
  std::set<std::string> known;
  for (const RealSetTerms& terms : real_set_terms()) {
    ASSERT_TRUE(stated.contains(terms.set)) << terms.set;
    EXPECT_EQ(stated.at(terms.set).licence, terms.licence) << terms.set;
    EXPECT_TRUE(terms.source.starts_with("github.com/")) << terms.set;
    known.insert(terms.set);
  }
  for (const std::string& name : real_set_names()) {
    const bool trains = !read_real_set(name, Split::Train, data_folder()).empty();
    EXPECT_TRUE(!trains || known.contains(name)) << name;
  }
}

TEST_F(Readers, evaluation_sets_have_the_documented_sizes) {
  const auto stated = stated_sets();
  ASSERT_FALSE(stated.empty()) << "no README.md in " << data_folder() << " states records";
  const std::pair<const char*, const char*> sets[] = {
      {"gsm8k", "test "},   {"commonsenseqa", "dev "}, {"strategyqa", "dev "},
      {"aqua", "test "},    {"humaneval", "test "},    {"mbpp", "test "},
      {"wikisql", "dev "},  {"creak", "dev "},         {"mt_bench", ""},
      {"vicuna_bench", ""}, {"blocksworld", ""},       {"creative_writing", ""},
      {"defog_sql", ""}};
  for (const auto& [name, word] : sets) {
    const std::size_t expected = stated_count(stated.at(name).records, word);
    EXPECT_GT(expected, 0u) << name;
    EXPECT_EQ(read_real_set(name, Split::Test, data_folder()).size(), expected) << name;
  }
}

TEST_F(Readers, right_answers_of_every_set_pass) {
  for (const auto& name : real_set_names()) {
    const auto train = read_real_set(name, Split::Train, data_folder());
    const auto test = read_real_set(name, Split::Test, data_folder());
    std::printf("%-16s train %6zu  test %5zu\n", name.c_str(), train.size(), test.size());
    EXPECT_FALSE(train.empty() && test.empty()) << name;
    const bool starts_python = name == "mbpp" || name == "humaneval";
    int n_wrong = 0;
    const std::size_t n = std::min<std::size_t>(test.size(), starts_python ? 3 : 300);
    for (std::size_t i = 0; i < n; i++) {
      if (test[i].completion.empty()) continue;  // the set has no right answer
      const auto result = check_record(test[i], test[i].completion);
      n_wrong += !result.correct && !result.skipped;
      EXPECT_TRUE(result.skipped || !check_record(test[i], "nothing").correct) << test[i].id;
    }
    EXPECT_EQ(n_wrong, 0) << name;
  }
}

TEST_F(Readers, evaluation_prompts_do_not_occur_in_training) {
  for (const auto& name : real_set_names()) {
    std::set<std::string> train;
    for (const auto& record : read_real_set(name, Split::Train, data_folder()))
      train.insert(normalised(record.prompt + record.completion));
    for (const auto& record : read_real_set(name, Split::Test, data_folder()))
      EXPECT_FALSE(train.contains(normalised(record.prompt + record.completion))) << record.id;
  }
}

// Compares training and evaluation prompts across all sets, ignoring case and punctuation.
TEST_F(Readers, no_training_prompt_equals_an_evaluation_prompt) {
  std::map<std::uint64_t, std::string> evaluated;  // hash of the prompt -> id of the record
  for (const auto& name : real_set_names()) {
    for (const auto& record : read_real_set(name, Split::Test, data_folder()))
      evaluated.emplace(fnv1a(normalised(record.prompt)), record.id);
  }
  EXPECT_GT(evaluated.size(), 5000u);
  const auto is_asked = [&](const Record& record) {
    if (record.prompt.empty()) return false;
    const auto found = evaluated.find(fnv1a(normalised(record.prompt)));
    if (found != evaluated.end()) ADD_FAILURE() << record.id << " is " << found->second;
    return found != evaluated.end();
  };
  std::int64_t n_learned = 0, n_found = 0;
  for (const auto& name : real_set_names()) {
    for (const auto& record : read_real_set(name, Split::Train, data_folder()))
      n_found += is_asked(record), n_learned++;
  }
  for (const std::string& task : task_names()) {
    for (int level = 1; level <= 3; level++) {
      for (int i = 0; i < 700; i++) {
        const auto record = task_generator(task).make(Split::Train, level, i);
        if (record) n_found += is_asked(*record), n_learned++;
      }
    }
  }
  EXPECT_EQ(n_found, 0) << "of " << n_learned;
  EXPECT_GT(n_learned, 50000);
}

TEST_F(Readers, advising_fills_variables_and_names_its_tables) {
  std::size_t n_questions = 0;
  std::map<std::string, std::size_t> per_split;
  std::ifstream file(data_folder() + "/advising/advising.json");
  for (const auto& query : nlohmann::json::parse(file)) {
    n_questions += query.at("sentences").size();
    for (const auto& sentence : query.at("sentences")) per_split[sentence.at("question-split")]++;
  }
  const auto stated = stated_sets();
  if (!stated.empty()) {
    EXPECT_EQ(n_questions, stated_count(stated.at("advising").records, ""));
  }
  for (const Split split : {Split::Train, Split::Dev, Split::Test}) {
    const auto records = read_real_set("advising", split, data_folder());
    const std::size_t n = per_split.at(std::string(split_name(split)));
    // The reader leaves out long training texts and test prompts that occur in training.
    EXPECT_TRUE(split == Split::Train ? records.size() > n * 3 / 4 && records.size() < n
                                      : records.size() <= n && records.size() + 1 >= n)
        << split_name(split) << " " << records.size() << " of " << n;
    for (const Record& record : records) {
      for (const char* variable : {"department0", "number0", "topic0", "semester0", "year0"})
        ASSERT_EQ((record.prompt + record.completion).find(variable), std::string::npos)
            << record.prompt << record.completion;
      for (const auto& word : split_text(record.answer, ' ')) {
        const auto alias = word.find("alias");
        if (alias == std::string::npos || word.starts_with("DERIVED_")) continue;
        const std::string table = word.substr(0, alias);
        ASSERT_NE(record.prompt.find("table named " + table + " with columns ["), std::string::npos)
            << record.prompt << record.answer;
      }
    }
  }
}

TEST_F(Readers, sql_answers_are_compared_by_their_rows) {
  const auto records = read_real_set("defog_sql", Split::Test, data_folder());
  int n_second = 0, n_ordered = 0;
  for (const Record& record : records) {
    const auto check = nlohmann::json::parse(record.check);
    n_ordered += check.at("ordered").get<bool>();
    ASSERT_NE(record.prompt.find("table named "), std::string::npos);
    for (const auto& accepted : check.at("accepted")) {
      const auto result = check_record(record, accepted.get<std::string>() + ";\n");
      ASSERT_TRUE(result.correct) << record.id << ": " << result.reason << ": " << accepted;
    }
    if (check.at("accepted").size() > 1) n_second++;
    EXPECT_FALSE(check_record(record, "SELECT 'no such row', 1, 2, 3, 4, 5, 6").correct);
  }
  EXPECT_GT(n_second, 30);
  EXPECT_GT(n_ordered, 15);
  EXPECT_LT(n_ordered, 60);
}

TEST(RowsOfQueries, order_counts_only_if_the_question_asks_for_it) {
  Record record;
  record.task = "defog_sql";
  nlohmann::json check = {{"form", "rows"},
                          {"script", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);"},
                          {"accepted", {"SELECT a FROM t ORDER BY a DESC"}},
                          {"ordered", false}};
  record.check = check.dump();
  EXPECT_TRUE(check_record(record, "SELECT a FROM t ORDER BY a").correct);
  EXPECT_FALSE(check_record(record, "SELECT a FROM t WHERE a = 1").correct);
  EXPECT_FALSE(check_record(record, "DROP TABLE t").correct);
  check["ordered"] = true;
  record.check = check.dump();
  EXPECT_FALSE(check_record(record, "SELECT a FROM t ORDER BY a").correct);
  EXPECT_TRUE(check_record(record, "SELECT a FROM t ORDER BY a DESC;").correct);
}

TEST(RowsOfQueries, a_script_cannot_access_files_or_run_forever) {
  const auto path = std::filesystem::path(testing::TempDir()) / "decoscope_attached.db";
  std::filesystem::remove(path);
  Record record;
  record.task = "defog_sql";
  for (const std::string& script :
       {"ATTACH '" + path.string() + "' AS x; CREATE TABLE x.t (a);",
        "CREATE TABLE t (a); VACUUM INTO '" + path.string() + "';",
        std::string("CREATE TABLE t AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                    "FROM n) SELECT i FROM n;"),
        std::string("no SQL")}) {
    record.check =
        nlohmann::json(
            {{"form", "rows"}, {"script", script}, {"accepted", {"SELECT 1"}}, {"ordered", false}})
            .dump();
    try {
      check_record(record, "SELECT 1");
      FAIL() << script;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::BadInput);
      EXPECT_NE(std::string(e.what()).find("check.script"), std::string::npos) << e.what();
    }
    EXPECT_FALSE(std::filesystem::exists(path)) << script;
  }
}

TEST(QueriesAsText, spaces_case_and_quotes_do_not_matter) {
  Record record;
  record.task = "wikisql";
  record.check = R"({"form": "exact"})";
  record.answer = "SELECT a FROM data WHERE b >= 'x y' AND c_d = 4";
  for (const char* same : {"select a from data where b>='x y' and c_d=4;\n",
                           "SELECT a FROM data WHERE b >= \"x  y\" AND c_d = 4\nmore"})
    EXPECT_TRUE(check_record(record, same).correct) << same;
  for (const char* other :
       {"SELECT a FROM data WHERE b <= 'x y' AND c_d = 4",
        "SELECT a FROM data WHERE b >= 'xy' AND c_d = 4",
        "SELECT a FROM data WHERE b >= 'x y' AND c d = 4", "SELECT a FROM data", ""})
    EXPECT_FALSE(check_record(record, other).correct) << other;
}

TEST_F(Readers, a_passage_needs_the_four_end_sentences) {
  for (const Record& record : read_real_set("creative_writing", Split::Test, data_folder())) {
    const auto check = nlohmann::json::parse(record.check);
    const auto sentences = check.at("sentences").get<std::vector<std::string>>();
    ASSERT_EQ(sentences.size(), 4u);
    // The prompt contains the four sentences in a row.
    EXPECT_TRUE(record.prompt.ends_with(" must be: " + joined(sentences, " ") + "\n"))
        << record.prompt;
    std::string passage = "Plan:\nSome lines.\n\nPassage:\n";
    for (const auto& sentence : sentences) passage += "It was so. " + sentence + "\n\n";
    EXPECT_TRUE(check_record(record, passage).correct) << passage;
    EXPECT_FALSE(check_record(record, passage + "One more.\n").correct);
    const auto result = check_record(record, replaced_all(passage, sentences[2], "It ended."));
    EXPECT_EQ(result.reason, "3 of 4 paragraphs end in their sentence");
  }
}

// Recipes that list no sets, as those of the bundled models, must keep their texts when sets are
// added.
TEST(DefaultSets, a_recipe_without_a_list_keeps_its_sets) {
  const auto sets = default_training_sets();
  EXPECT_EQ(std::count(sets.begin(), sets.end(), "advising"), 0);
  EXPECT_EQ(std::count(sets.begin(), sets.end(), "wikisql"), 1);
  EXPECT_EQ(sets.size(), real_set_names().size() - 1);
}

// excluded.inc has the hashes of the published problems, so generation does not depend on the data
// folder.
TEST_F(Readers, excluded_blocks_problems_are_the_published_ones) {
  constexpr std::uint64_t kExcluded[] = {
#include "engine/data/blocks/excluded.inc"
  };
  std::set<std::uint64_t> expected;
  for (const auto& record : read_real_set("blocksworld", Split::Test, data_folder())) {
    const auto check = nlohmann::json::parse(record.check);
    auto init = check.at("init").get<std::vector<std::string>>();
    auto goal = check.at("goal").get<std::vector<std::string>>();
    std::sort(init.begin(), init.end());
    std::sort(goal.begin(), goal.end());
    expected.insert(fnv1a(joined(init, ", ") + " -> " + joined(goal, ", ")));
  }
  EXPECT_EQ(expected.size(), 432u);
  EXPECT_EQ(std::set<std::uint64_t>(std::begin(kExcluded), std::end(kExcluded)), expected);
}

TEST_F(Readers, a_mixture_contains_open_texts) {
  const TrainingStream stream(
      R"({"real": {"weight": 1, "sets": ["gsm8k", "tinyshakespeare"]}, "arith": {"weight": 1}})", 3,
      data_folder());
  std::set<std::string> parts;
  for (int i = 0; i < 200; i++) parts.insert(stream.text(i).part);
  EXPECT_EQ(parts, (std::set<std::string>{"arith", "gsm8k", "tinyshakespeare"}));
}

// No user turn of MT-bench or Vicuna-bench occurs in a training dialog.
TEST_F(Readers, training_dialogs_contain_no_benchmark_turn) {
  std::set<std::string> evaluated;
  for (const char* bench : {"mt_bench", "vicuna_bench"}) {
    for (const Record& record : read_real_set(bench, Split::Test, data_folder())) {
      const auto check = nlohmann::json::parse(record.check);
      for (const auto& turn : check.at("turns"))
        evaluated.insert(normalised(turn.get<std::string>()));
    }
  }
  EXPECT_GT(evaluated.size(), 150u);
  const auto chat = task_generator_with_open_texts("chat", data_folder());
  int n_turns = 0, n_open = 0;
  for (int level = 1; level <= 3; level++) {
    for (int i = 0; i < 700; i++) {
      const auto record = chat->make(Split::Train, level, i);
      n_open += nlohmann::json::parse(record->check).at("form") == "open";
      std::string_view rest = record->prompt;
      for (auto at = rest.find("USER: "); at != std::string_view::npos; at = rest.find("USER: ")) {
        rest.remove_prefix(at + 6);
        const std::string said = normalised(rest.substr(0, rest.find(" ASSISTANT:")));
        EXPECT_FALSE(evaluated.contains(said)) << said;
        n_turns++;
      }
    }
  }
  EXPECT_GT(n_turns, 2100);
  // 3,339 dialogs, eight times each, and the instances of the seed tasks, four times each, are
  // mixed into 120,000 generated texts.
  EXPECT_NEAR(n_open, 2100 * 0.187, 90);
  EXPECT_NEAR(static_cast<double>(chat->full_size()), 147600, 1500);
}

TEST_F(Readers, given_sentences_do_not_occur_in_evaluation) {
  std::set<std::string> evaluated;
  for (const char* set : {"gsm8k", "commonsenseqa", "creak"})
    for (const Record& record : read_real_set(set, Split::Test, data_folder()))
      evaluated.insert(" " + normalised(record.prompt) + " ");
  std::set<std::string> writing;
  for (const Record& record : read_real_set("creative_writing", Split::Test, data_folder())) {
    const auto check = nlohmann::json::parse(record.check);
    for (const auto& sentence : check.at("sentences"))
      writing.insert(normalised(sentence.get<std::string>()));
  }
  EXPECT_EQ(writing.size(), 95u) << "the 80 inputs use 95 distinct sentences";
  const auto write = task_generator_with_open_texts("write", data_folder());
  std::map<std::string, int> sources;
  for (int i = 0; i < 400; i++) {
    const auto check = nlohmann::json::parse(write->make(Split::Train, 3, i)->check);
    for (const auto& source : check.at("sources")) sources[source]++;
    for (const auto& sentence : check.at("sentences")) {
      const std::string text = normalised(sentence.get<std::string>());
      EXPECT_FALSE(writing.contains(text)) << text;
      for (const std::string& question : evaluated)
        EXPECT_EQ(question.find(" " + text + " "), std::string::npos) << text;
    }
  }
  EXPECT_EQ(sources.size(), 4u);
  EXPECT_NEAR(sources["grammar"], 1120, 120);
}

TEST_F(Readers, level_1_draws_only_short_open_sentences) {
  const auto write = task_generator_with_open_texts("write", data_folder());
  int n_open = 0;
  for (int i = 0; i < 200; i++) {
    const auto check = nlohmann::json::parse(write->make(Split::Train, 1, i)->check);
    for (std::size_t s = 0; s < 4; s++) {
      n_open += check.at("sources")[s] != "grammar";
      EXPECT_LE(check.at("sentences")[s].get<std::string>().size(), 50u);
    }
  }
  EXPECT_GT(n_open, 160);
}

TEST_F(Readers, open_plain_texts_belong_to_one_split) {
  const auto plain = task_generator_with_open_texts("plain", data_folder());
  std::map<std::string, std::string> split_of;
  std::map<std::string, int> n;
  for (const Split split : {Split::Train, Split::Dev, Split::Test}) {
    for (int i = 0; i < 1000; i++) {
      const auto record = plain->make(split, 1, i);
      const auto [it, fresh] = split_of.emplace(record->completion, record->split);
      EXPECT_TRUE(fresh || it->second == record->split) << record->completion;
      EXPECT_EQ(record->completion.find("So the answer is"), std::string::npos);
      if (nlohmann::json::parse(record->check).at("form") == "open")
        n[std::string(split_name(split)) + " " + record->answer]++;
    }
  }
  for (const char* split : {"train", "dev", "test"})
    for (const char* set : {"tinyshakespeare", "creak", "strategyqa"})
      EXPECT_GT(n[std::string(split) + " " + set], 5) << split << " " << set;
}

// After full_size() texts of a part, its open texts do not occur any more.
TEST_F(Readers, open_dialogs_occur_only_up_to_the_full_size) {
  std::set<std::string> open;
  for (const char* set : {"taskmaster4", "self_instruct"})
    for (const Record& record : read_real_set(set, Split::Train, data_folder()))
      open.insert(record.prompt + record.completion);
  const TrainingStream stream(R"({"chat": {"weight": 1, "open_texts": true}})", 5, data_folder());
  const auto n_open = [&](std::int64_t from) {
    int n = 0;
    for (std::int64_t i = from; i < from + 300; i++) {
      const TrainingText text = stream.text(i);
      n += open.contains(text.prompt + text.completion);
    }
    return n;
  };
  EXPECT_GT(n_open(0), 20);
  EXPECT_GT(n_open(140000), 20);
  EXPECT_EQ(n_open(150000), 0);
}

TEST(ReadersOfBadFiles, errors_name_file_line_and_field) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "decoscope_readers";
  std::filesystem::create_directories(dir / "gsm8k");
  const std::pair<const char*, const char*> cases[] = {
      {"{\"question\": \"a\", \"answer\": \"#### 1\"}\n{\"question\": 3}\n", "train.jsonl:2"},
      {"not json\n", "train.jsonl:1"},
      {"\n\n[]\n", "train.jsonl:3"},
      {"{\"question\": \"a\"}\n", "answer"}};
  for (const auto& [text, expected] : cases) {
    std::ofstream(dir / "gsm8k" / "train.jsonl") << text;
    try {
      read_real_set("gsm8k", Split::Train, dir.string());
      FAIL() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::BadInput);
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(read_real_set("gsm8k", Split::Test, dir.string()), Error);
  EXPECT_THROW(read_real_set("no_such_set", Split::Test, dir.string()), Error);
}

}  // namespace
}  // namespace engine

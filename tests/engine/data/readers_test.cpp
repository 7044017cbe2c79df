#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"

namespace engine {
namespace {

// The folder of the open texts, or "".
std::string data_dir() {
  const char* named = std::getenv("DECOSCOPE_DATA");
  const std::string dir = named != nullptr ? named : DECOSCOPE_SOURCE_DIR "/../shared/data";
  return std::filesystem::is_directory(dir) ? dir : std::string();
}

class Readers : public testing::Test {
 protected:
  void SetUp() override {
    if (data_dir().empty()) GTEST_SKIP() << "no folder of open texts; set DECOSCOPE_DATA";
  }
};

// The table of the data folder's own README says each set's licence.
TEST_F(Readers, licences_are_those_the_data_folder_states) {
  std::ifstream readme(data_dir() + "/README.md");
  std::map<std::string, std::string> stated;
  std::string line;
  while (std::getline(readme, line)) {
    const auto cells = split_text(line, '|');
    if (cells.size() > 3 && trimmed(cells[1]).starts_with("`"))
      stated[std::string(trimmed(cells[1]))] = std::string(trimmed(cells[2]));
  }
  if (stated.empty()) GTEST_SKIP() << "the data folder has no README with a table of licences";
  std::set<std::string> known;
  for (const RealSetTerms& terms : real_set_terms()) {
    EXPECT_EQ(stated["`" + terms.set + "`"], terms.licence) << terms.set;
    EXPECT_TRUE(terms.source.starts_with("github.com/")) << terms.set;
    known.insert(terms.set);
  }
  for (const std::string& name : real_set_names()) {
    const bool trains = !read_real_set(name, Split::Train, data_dir()).empty();
    EXPECT_TRUE(!trains || known.contains(name)) << name;
  }
}

TEST_F(Readers, every_set_is_read_and_its_right_answers_score_as_right) {
  for (const auto& name : real_set_names()) {
    const auto train = read_real_set(name, Split::Train, data_dir());
    const auto test = read_real_set(name, Split::Test, data_dir());
    std::printf("%-16s train %6zu  test %5zu\n", name.c_str(), train.size(), test.size());
    EXPECT_FALSE(train.empty() && test.empty()) << name;
    const bool starts_python = name == "mbpp" || name == "humaneval";
    int n_wrong = 0;
    const std::size_t n = std::min<std::size_t>(test.size(), starts_python ? 3 : 300);
    for (std::size_t i = 0; i < n; i++) {
      const auto result = check_record(test[i], test[i].completion);
      n_wrong += !result.correct && !result.skipped;
      EXPECT_TRUE(result.skipped || !check_record(test[i], "nothing").correct) << test[i].id;
    }
    EXPECT_EQ(n_wrong, 0) << name;
  }
}

TEST_F(Readers, no_evaluation_prompt_is_among_the_training_texts) {
  for (const auto& name : real_set_names()) {
    std::set<std::string> train;
    for (const auto& record : read_real_set(name, Split::Train, data_dir()))
      train.insert(normalised(record.prompt + record.completion));
    for (const auto& record : read_real_set(name, Split::Test, data_dir()))
      EXPECT_FALSE(train.contains(normalised(record.prompt + record.completion))) << record.id;
  }
}

// The hashes in the tree are those of the published problems, so generation is the same with and
// without the data folder.
TEST_F(Readers, the_excluded_blocksworld_problems_are_the_published_ones) {
  constexpr std::uint64_t kExcluded[] = {
#include "engine/data/blocks_excluded.inc"
  };
  std::set<std::uint64_t> expected;
  for (const auto& record : read_real_set("blocksworld", Split::Test, data_dir())) {
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

TEST_F(Readers, a_mixture_draws_on_them) {
  const TrainingStream stream(
      R"({"real": {"weight": 1, "sets": ["gsm8k", "tinyshakespeare"]}, "arith": {"weight": 1}})", 3,
      data_dir());
  std::set<std::string> parts;
  for (int i = 0; i < 200; i++) parts.insert(stream.text(i).part);
  EXPECT_EQ(parts, (std::set<std::string>{"arith", "gsm8k", "tinyshakespeare"}));
}

TEST(ReadersOfBadFiles, say_file_line_and_field) {
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

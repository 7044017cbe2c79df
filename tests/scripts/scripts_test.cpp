// The scripts that measure, run with a program of known figures (small_program.py): what is asked,
// that nothing is asked twice, and that a run which pays for its rows alone shows as 1.00.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/needs.h"

namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class MeasuringScripts : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(std::system("python3 -c pass >/dev/null 2>&1") == 0, "no python3 here");
    std::string name = testing::TempDir() + "measuringXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  /// What the script prints, its environment's settings before it.
  std::string printed(const std::string& settings, const std::string& script) const {
    const std::string source = DECOSCOPE_SOURCE_DIR;
    const std::string command = "ASKED=" + log() + " DECOSCOPE_PROGRAM=" + source +
                                "/tests/scripts/small_program.py " + settings + " " + source +
                                "/scripts/" + script + " " + out() + " >" + folder_ + "/printed";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream file(folder_ + "/printed");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The calls since the last time this was asked.
  std::vector<std::string> asked() const {
    std::vector<std::string> calls;
    std::ifstream file(log());
    for (std::string line; std::getline(file, line);) calls.push_back(line);
    fs::remove(log());
    return calls;
  }
  std::string out() const { return folder_ + "/results"; }

 private:
  std::string log() const { return folder_ + "/asked"; }
  std::string folder_;
};

/// The cells of all rows of Markdown tables, their heads among them.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| ---")) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(2));
    for (std::string cell; std::getline(parts, cell, '|');) {
      const auto first = cell.find_first_not_of(' ');
      if (first != std::string::npos)
        cells.push_back(cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    }
    rows.push_back(cells);
  }
  return rows;
}

/// A cell by the names of its row and its column.
std::string cell(const std::string& text, const std::string& row, const std::string& column) {
  std::size_t at = 0;
  for (const auto& cells : rows_of(text)) {
    const auto found = std::ranges::find(cells, column);
    if (found != cells.end()) at = static_cast<std::size_t>(found - cells.begin());
    if (at > 0 && cells[0] == row && at < cells.size()) return cells[at];
  }
  return "none";
}

TEST_F(MeasuringScripts, a_race_of_reasoning_shows_what_its_targets_ask_for) {
  const std::string text = printed("DECOSCOPE_RR_REPEATS=1", "reason_race.sh");
  for (const char* name : {"ar", "speculative", "speculative-3-texts", "seed-1", "seed-3-together",
                           "window-1", "window-5", "window-3-bound-24"})
    EXPECT_EQ(cell(text, name, "of its rows"), "1.00") << name << "\n" << text;
  // Both models work all the time: the bound, and twice what rows and drafts cost in turn.
  EXPECT_EQ(cell(text, "seed-3", "of its rows"), "2.00");
  EXPECT_EQ(cell(text, "seed-3", "against speculative"), "2.00x");
  EXPECT_EQ(cell(text, "seed-3", "bound: paper"), "2.00");
  EXPECT_EQ(cell(text, "seed-3", "here"), "2.00");
  EXPECT_EQ(cell(text, "seed-3", "reached"), "1.00");
  // Three texts in a verification: 7.1 ms instead of 18.9, and nothing at the same time.
  EXPECT_EQ(cell(text, "seed-3-together", "against speculative"), "1.45x");
  EXPECT_EQ(cell(text, "seed-1", "bound: paper"), "1.00");
  EXPECT_EQ(cell(text, "4", "branch_cache_bytes"), "4,000,000");
  EXPECT_EQ(cell(text, "4", "weight_bytes"), cell(text, "1", "weight_bytes"));
  EXPECT_EQ(cell(text, "window-3-bound-24", "right"), "495 of 500");
  EXPECT_EQ(cell(text, "window-3-bound-24", "points against ar"), "-1.0");

  const auto calls = asked();
  EXPECT_THAT(calls, Contains("reason cot --task kb --json --split dev --count 400 --decoder "
                              "fastcot --set window=3 --find-bound --tolerance 1"));
  const std::string bound = " --decoder fastcot --set window=3 --set stop=bound --set bound=24";
  const std::string cot = "reason cot --task kb --json --split test --count ";
  EXPECT_THAT(calls, Contains(cot + "500" + bound));
  EXPECT_THAT(calls, Contains(cot + "15 --scale 4x2" + bound));
  // No bound was found for the other window.
  EXPECT_THAT(calls, Not(Contains(HasSubstr("window=5 --set stop=bound"))));
}

TEST_F(MeasuringScripts, a_race_of_reasoning_goes_on_where_it_was_stopped) {
  const std::string first = printed("DECOSCOPE_RR_REPEATS=1", "reason_race.sh");
  asked();
  fs::remove(out() + "/tree-seed-3.1.json");
  EXPECT_EQ(printed("DECOSCOPE_RR_REPEATS=1", "reason_race.sh"), first);
  const auto calls = asked();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_THAT(calls[0], HasSubstr("reason tot --task arith"));
  EXPECT_THAT(calls[0], HasSubstr("--decoder seed --set branches=3"));
}

TEST_F(MeasuringScripts, every_task_is_held_against_plain_decoding) {
  const std::string text = printed("DECOSCOPE_EXACT_COUNT=2", "exactness.sh");
  EXPECT_THAT(rows_of(text), SizeIs(1 + 8 * 4));
  EXPECT_EQ(cell(text, "plain", "seed"), "2 of 2");
  // Texts without a prompt go on from their beginning.
  std::ifstream file(out() + "/plain.jsonl");
  const std::string prompts(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(prompts, HasSubstr(R"("prompt": "Ravens are birds. They are black and they")"));
}

TEST_F(MeasuringScripts, draft_and_verify_measures_the_defaults_of_every_task) {
  const std::string text = printed("", "draft_and_verify.sh");
  for (const auto& cells : rows_of(text)) {
    if (cells[0] != "task") EXPECT_EQ(cells[7], "1.00") << text;
  }
  EXPECT_THAT(rows_of(text), SizeIs(1 + 5 * 2));
  EXPECT_THAT(text, HasSubstr("| kb | mcsd | 2.00 | 7.0 |"));
  EXPECT_THAT(text, HasSubstr("| blocks | mcsd | 2.00 | 7.0 |"));
  for (const std::string& call : asked()) EXPECT_THAT(call, Not(HasSubstr("--set")));
}

}  // namespace
